import { setImmediate as nextTick } from 'node:timers/promises'
import type { Job, ListQuery, Stored } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { LIMITS } from '@impresario/protocol'
import { countOf } from '../http/page.ts'
import { idAt, MS_MAX, timeIn } from './job-query.ts'

export interface OldestWalk {
  /** What the storage is asked for; its limit is that of the page. */
  readonly query: ListQuery
  /** The page begins behind this id. */
  readonly after: string | undefined
  /** False when the page takes no more; then it ends before this record. */
  readonly take: (record: Stored<Job> & { readonly id: string }) => boolean
}

/** The span of time that is looked at first; it grows where there is little, and shrinks where there is much. */
const SPAN_MS = 1_000
const GROWTH = 4
const SLOW_GROWTH = 1.25
/** Looks for one page. It then ends, and says where to go on. */
const LOOKS_MAX = 120
/** Once a look had to end early, because a filter leaves out nearly all or because records are large, only so many more follow. */
const LONG_LOOKS_MAX = 16

/**
 * Jobs from the oldest on. Storages list the newest first, so this reads spans of time from the oldest one on, each short
 * enough to fit on a page, and turns them round. Gives the place behind which the next page begins; `undefined` when there
 * is none.
 */
export async function walkOldest(engine: Engine, { query, after, take }: OldestWalk): Promise<string | undefined> {
  let left = query.limit
  let last = after
  let from = after ?? query.from
  const first = from === undefined ? await firstSpan(engine, query) : { start: momentIn(from), spanMs: SPAN_MS }
  if (first === undefined) return undefined
  let { start, spanMs } = first
  let looksLeft = LOOKS_MAX
  let growth = GROWTH
  for (; looksLeft > 0; looksLeft -= 1) {
    if (looksLeft < LOOKS_MAX) await nextTick()
    const end = Math.min(start + spanMs, MS_MAX)
    const before = earlierId(query.before, end === MS_MAX ? undefined : idAt(end))
    const span = { ...query, ...(from === undefined ? {} : { from }), ...(before === undefined ? {} : { before }) }
    const found = await engine.listJobs({ ...span, ...BOUNDS, limit: left + 2 })
    if (left === 0 && found.some(({ id }) => id !== after)) return last
    const isCut = found.length > left + 1 || found.next !== undefined
    if (found.next !== undefined) {
      if (growth === GROWTH && found.length === 0 && (await countOf(engine, query)) === 0) return undefined
      looksLeft = Math.min(looksLeft, LONG_LOOKS_MAX)
      growth = SLOW_GROWTH
    }
    if (isCut && spanMs > 1) {
      spanMs = shorterSpan(spanMs, end, found.next)
      continue
    }
    const records = isCut ? oneByOne(engine, await idsOf(engine, span)) : found.toReversed()
    for await (const record of records) {
      if (record === undefined || record.id === after) continue
      if (left === 0 || !take(record)) return last
      left -= 1
      last = record.id
    }
    if (before === query.before) return undefined
    from = before
    start = end
    // As long as the rest of the page would need, by what was found in this one.
    spanMs = Math.ceil(
      spanMs * Math.min(growth, Math.max(0.5, left === 0 || found.length === 0 ? growth : left / found.length)),
    )
  }
  return from ?? last ?? idAt(start)
}

/** How far back a look came from the end of its span is what one look can do there. */
function shorterSpan(spanMs: number, end: number, next: string | undefined): number {
  const reachMs = next === undefined ? 0 : end - momentIn(next)
  return Math.max(1, Math.min(Math.ceil(spanMs / GROWTH), reachMs > 0 ? reachMs : spanMs))
}

const BOUNDS = { bytesMax: LIMITS.pagePieceBytes, looksMax: LIMITS.pagePieceLooks }

/** How often the span in which the oldest one lies is halved: spans that are empty or too full cost a look each. */
const HALVINGS = 8

/** A span in which the oldest job lies, with none before it; `undefined` if there is no such job at all. */
async function firstSpan(
  engine: Engine,
  query: ListQuery,
): Promise<{ readonly start: number; readonly spanMs: number } | undefined> {
  // Where a look ended early there may be one.
  const newestBefore = async (before: string | undefined): Promise<string | undefined> => {
    const page = await engine.listJobs({ ...query, ...BOUNDS, ...(before === undefined ? {} : { before }), limit: 1 })
    return page[0]?.id ?? page.next
  }
  const newest = await newestBefore(query.before)
  if (newest === undefined) return undefined
  if ((await countOf(engine, query)) === 0) return undefined
  let known = momentIn(newest)
  let start = 0
  for (let spanMs = SPAN_MS; known > 0 && start === 0; spanMs *= GROWTH) {
    const moment = Math.max(0, known - spanMs)
    const older = await newestBefore(idAt(moment))
    if (older !== undefined) known = momentIn(older)
    else if (moment === 0) break
    else start = moment
  }
  for (let halving = 0; halving < HALVINGS && known - start > SPAN_MS; halving += 1) {
    const moment = Math.floor((start + known) / 2)
    const older = await newestBefore(idAt(moment))
    if (older === undefined) start = moment
    else known = momentIn(older)
  }
  return { start, spanMs: Math.max(SPAN_MS, known - start + 1) }
}

/** Of one millisecond, in which a batch may have made more jobs than a page has. The oldest first. */
async function idsOf(engine: Engine, query: ListQuery): Promise<readonly string[]> {
  const ids: string[] = []
  let { before } = query
  for (;;) {
    const bounds = { ...BOUNDS, limit: LIMITS.pageSizeMax }
    const page = await engine.listJobs({ ...query, ...bounds, ...(before === undefined ? {} : { before }) })
    ids.push(...page.map(({ id }) => id))
    before = page.next ?? (page.length < LIMITS.pageSizeMax ? undefined : page.at(-1)?.id)
    if (before === undefined) return ids.toReversed()
  }
}

async function* oneByOne(
  engine: Engine,
  ids: readonly string[],
): AsyncGenerator<(Stored<Job> & { readonly id: string }) | undefined> {
  for (const id of ids) {
    const stored = await engine.readJob(id)
    yield stored === undefined ? undefined : { ...stored, id }
  }
}

function earlierId(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return a < b ? a : b
}

/** By its id; an id of another program tells no time, and is looked for from the beginning. */
function momentIn(id: string): number {
  const seconds = timeIn(id)
  return seconds === undefined ? 0 : Math.floor(seconds * 1_000)
}
