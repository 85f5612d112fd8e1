import type { ClaimOptions, Item, Job, JobStatus, Lease, Put, Queue, Storage } from '@impresario/core'

/** Durations are whole seconds, so that a backend with a real clock has time for its own latency. */
export const SECOND = 1_000

export function job(id: string, status: JobStatus = 'running'): Job {
  return {
    id,
    blueprint: 'press',
    blueprintVersion: 1,
    client: { id: 'client' },
    status,
    state: 'start',
    visit: 1,
    failures: 0,
    initialData: { title: 'Zauberflöte', nested: { list: [1, 2.5, null, true, 'x'] } },
    stateHistory: {},
    branches: {},
    priority: 0,
    depth: 0,
    trail: [],
    createdAt: 1,
    updatedAt: 1,
  }
}

/** The properties of a record that a case sets besides its value. */
interface JobFacets {
  readonly owner?: string
  readonly status?: JobStatus
  readonly name?: string
  readonly text?: string
  readonly expiresMs?: number
}

export function putJob(id: string, version: number, facets: JobFacets = {}): Put {
  const { owner = 'client', status = 'running', name = 'press', text, expiresMs } = facets
  return {
    kind: 'job',
    id,
    version,
    value: { ...job(id, status), visit: version },
    facets: { owner, status, name, ...(text === undefined ? {} : { text }) },
    ...(expiresMs === undefined ? {} : { expiresMs }),
  }
}

export function item(id: string, fields: Partial<Item> = {}): Item {
  return { queue: 'turns', id, lane: 'a', priority: 0, delayMs: 0, payload: { id }, ...fields }
}

export async function claim(storage: Storage, options: Partial<ClaimOptions> = {}): Promise<readonly Lease[]> {
  return (await storage.claim('turns', { limit: 100, leaseMs: 10 * SECOND, ...options })).leases
}

export async function claimedIds(storage: Storage, options: Partial<ClaimOptions> = {}): Promise<readonly string[]> {
  return idsOf(await claim(storage, options))
}

export async function claimOne(storage: Storage, options: Partial<ClaimOptions> = {}): Promise<Lease> {
  return only(await claim(storage, { limit: 1, ...options }))
}

export async function expired(storage: Storage, queue: Queue = 'turns'): Promise<readonly Lease[]> {
  return (await storage.claimExpired(queue, { limit: 100, leaseMs: 10 * SECOND })).leases
}

export function idsOf(things: readonly { readonly id: string }[]): readonly string[] {
  return things.map(({ id }) => id)
}

export function only<T>(list: readonly T[]): T {
  const [first] = list
  if (first === undefined || list.length !== 1) throw new Error(`Expected one, got ${list.length}`)
  return first
}
