/** What the server's settings guarantee for acknowledged writes. */
export interface Durability {
  /**
   * `always`: no write is lost. `everysec`: writes of the last second or two may be lost when the machine fails.
   * `none`: writes since the last snapshot, or all, may be lost. `unknown`: the server does not report its settings.
   */
  readonly promise: 'always' | 'everysec' | 'none' | 'unknown'
  /** Readable reasons why these settings do not guarantee that no write is lost. */
  readonly doubts: readonly string[]
}

/** The settings that the result depends on. */
export const DURABILITY_SETTINGS = [
  'appendonly',
  'appendfsync',
  'no-appendfsync-on-rewrite',
  'maxmemory',
  'maxmemory-policy',
] as const

const PROMISES = ['unknown', 'none', 'everysec', 'always'] as const

/**
 * Evaluates the `CONFIG GET` reply of each server; `undefined` if the command is forbidden. The weakest server counts.
 */
export function weakestOf(
  all: readonly ReadonlyMap<string, string>[] | undefined,
  servers: { readonly hasReplicas: boolean },
): Durability {
  const judged = (all ?? [undefined]).map((settings) => durabilityOf(settings, servers))
  const promise = PROMISES.find((one) => judged.some((durability) => durability.promise === one)) ?? 'unknown'
  return { promise, doubts: [...new Set(judged.flatMap(({ doubts }) => doubts))] }
}

function durabilityOf(
  settings: ReadonlyMap<string, string> | undefined,
  { hasReplicas }: { readonly hasReplicas: boolean },
): Durability {
  if (settings === undefined) {
    const doubt =
      'the server does not let this user read its settings (CONFIG GET), so it is not known whether acknowledged writes are safe'
    return { promise: 'unknown', doubts: [doubt] }
  }
  const doubts: string[] = []
  const fsync = settings.get('appendfsync')
  const isAppending = settings.get('appendonly') === 'yes'
  if (!isAppending) {
    doubts.push('appendonly is off: what was written since the last snapshot is lost with the process')
  } else if (fsync === 'everysec') {
    doubts.push('appendfsync is everysec: up to two seconds of writes are lost with the machine')
  } else if (fsync !== 'always') {
    doubts.push('appendfsync is no: the operating system decides how much is lost with the machine')
  } else if (settings.get('no-appendfsync-on-rewrite') === 'yes') {
    doubts.push('no-appendfsync-on-rewrite is yes: writes are not safe while the server rewrites its log')
  }
  const promise = promiseOf(isAppending, fsync, doubts)
  if (Number(settings.get('maxmemory') ?? 0) > 0 && settings.get('maxmemory-policy') !== 'noeviction') {
    doubts.push(
      `maxmemory-policy is ${settings.get('maxmemory-policy') ?? 'unknown'}: the server deletes data when it is full`,
    )
  }
  if (hasReplicas) doubts.push('replicas are written later: a failover can lose writes that were acknowledged')
  return { promise, doubts }
}

function promiseOf(isAppending: boolean, fsync: string | undefined, doubts: readonly string[]): Durability['promise'] {
  if (!isAppending) return 'none'
  if (fsync === 'everysec') return 'everysec'
  return doubts.length === 0 ? 'always' : 'none'
}
