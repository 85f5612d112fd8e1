import { nextPage } from '@impresario/core'
import type { KeptRoom, Put, Records, Storage, Stored } from '@impresario/core'

/** For which files of one job room is kept. */
export interface JobRoom {
  readonly jobId: string
  readonly version: number
  readonly kept: readonly KeptRoom[]
}

/** Marks these records among those of other quotas, in their ids and for lists. */
const PREFIX = '%file-room/'
const STATUS = 'file-room'
const PAGE = 50
/** Much longer than it takes until the next count, which settles what has ended. */
const STORED_MS = 30 * 86_400_000

export async function readRoom(storage: Storage, jobId: string): Promise<JobRoom> {
  return roomOf(jobId, await storage.read('quota', `${PREFIX}${jobId}`))
}

/** The jobs for which room is kept: those of one client, or all. */
export async function* roomsOf(storage: Storage, clientId?: string): AsyncGenerator<JobRoom> {
  const owner = clientId === undefined ? {} : { owner: clientId }
  let before: string | undefined
  do {
    const from = before === undefined ? {} : { before }
    const page = await storage.list('quota', { ...owner, status: STATUS, limit: PAGE, ...from })
    for (const stored of page) yield roomOf(stored.id.slice(PREFIX.length), stored)
    before = nextPage(page, PAGE)
  } while (before !== undefined)
}

export function putRoom({ jobId, version }: JobRoom, clientId: string, kept: readonly KeptRoom[]): Put {
  return {
    kind: 'quota',
    id: `${PREFIX}${jobId}`,
    version: version + 1,
    value: { period: STATUS, used: kept.length, kept },
    // Lists need not find what is empty.
    facets: kept.length === 0 ? {} : { owner: clientId, status: STATUS },
    expiresMs: STORED_MS,
  }
}

/** One entry for each name, for the larger size and the longer time: both addresses work until they end. */
export function withRoom(kept: readonly KeptRoom[], added: KeptRoom): readonly KeptRoom[] {
  const same = kept.find(({ name }) => name === added.name) ?? added
  const merged = {
    name: added.name,
    bytes: Math.max(same.bytes, added.bytes),
    endsAt: Math.max(same.endsAt, added.endsAt),
  }
  return [...kept.filter(({ name }) => name !== added.name), merged]
}

function roomOf(jobId: string, stored: Stored<Records['quota']> | undefined): JobRoom {
  return { jobId, version: stored?.version ?? 0, kept: stored?.value.kept ?? [] }
}
