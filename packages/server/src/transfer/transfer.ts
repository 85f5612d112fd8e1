import { randomUUID } from 'node:crypto'
import { mustBeOwn } from '@impresario/core'
import type { EntryCounts, Transferable, TransferPage, TransferMark, Origin, PageSize } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { differences, Sums } from './sums.ts'
import type { SumTable } from './sums.ts'

/** One of the two storages of a transfer. */
interface Side {
  readonly storage: Transferable
  /** Where it is, without secrets. */
  readonly name: string
}

export interface TransferOptions {
  readonly from: Side
  readonly to: Side
  /** Continue although an instance seems to be running on one of the two. */
  readonly force?: boolean
  /** Leave the source as usable as it was: a copy. */
  readonly keepSource?: boolean
  /** Throw away what an unfinished transfer has left in the target. */
  readonly restart?: boolean
  readonly size?: PageSize
  readonly onProgress?: (progress: TransferProgress) => void
}

export interface TransferProgress {
  readonly phase: 'copying' | 'checking'
  readonly done: number
  /** As counted at the start. */
  readonly total: number
}

export interface TransferReport {
  readonly move: string
  /** `earlier`: there was nothing left to do. */
  readonly outcome: 'moved' | 'copied' | 'earlier'
  /** It went on where an earlier run had stopped. */
  readonly isResumed: boolean
  readonly entries: SumTable
  readonly total: number
}

/** What a mark on the target remembers, so that a transfer can go on: nothing that is kept only in memory decides anything. */
interface Progress {
  readonly source: Origin
  readonly target: Origin
  readonly lastToken: number
  readonly lastOrder: number
  readonly cursor: string | undefined
  readonly isCopied: boolean
  readonly sums: SumTable
}

interface Job extends TransferOptions {
  readonly move: string
  readonly run: string
  readonly since: string
  readonly size: PageSize
}

/** A few thousand a second over a network that takes a millisecond, and never more than some megabytes in memory. */
const SIZE: PageSize = { entriesMax: 1_000, bytesMax: 4_000_000 }
/** Numbers of order that every storage can hold, with room for many more. */
const ORDER_MAX = 2 ** 47

/**
 * Carries everything from one storage to the other.
 *
 * Marks on both sides say how far it is: `receiving` on the target and then `moving` on the source, before the first entry;
 * `moved` on the source and then `received` on the target, after the last one was read back and found to be the same. At no
 * moment can orchestrators start on both. Each page is written with the place where the next one begins, so that a transfer that
 * was cut short at any moment goes on from there.
 */
export async function transfer(options: TransferOptions): Promise<TransferReport> {
  const { from, to } = options
  const source = await from.storage.mark()
  const target = await to.storage.mark()
  const isSame = source !== undefined && source.move === target?.move
  const job = { size: SIZE, ...options, move: randomUUID(), run: randomUUID(), since: new Date().toISOString() }
  if (isSame && target?.state === 'received') return ended({ ...job, move: target.move }, source)
  if (isSame && source.state === 'receiving') throw sameStorage(options)
  if (isSame && target?.state === 'receiving' && options.restart !== true) {
    return run({ ...job, move: target.move, since: target.since }, progressOf(target), true)
  }
  const isOwnRest = isSame && options.restart === true
  if (!isOwnRest) mustBeSource(source, options)
  return run(job, await begin(job, { source, target, isOwnRest }), false)
}

/** Everything of a run but its beginning. */
async function run(job: Job, begun: Progress, isResumed: boolean): Promise<TransferReport> {
  const { from, to, keepSource = false } = job
  if (isResumed) {
    await to.storage.setMark(markOf(job, 'receiving', begun))
    await mustBeUnused(job)
  }
  const progress = await copy(job, begun)
  const found = await check(job, progress)
  const wrong = differences(progress.sums, found)
  if (wrong.length > 0) {
    throw new ImpresarioError(
      'INTERNAL',
      `What arrived in ${to.name} is not what was sent: ${wrong.join('; ')}. Nothing was taken from ${from.name}. ` +
        'Run the same command with --restart to copy everything again.',
      { details: { move: job.move } },
    )
  }
  await to.storage.finish(progress.lastToken)
  await mustBeUnchanged(job, progress)
  mustBeOwn(await to.storage.mark(), markOf(job, 'receiving'))
  const received = markOf(job, 'received')
  if (keepSource) {
    await to.storage.setMark(received)
    await from.storage.setMark(undefined)
  } else {
    await from.storage.setMark(markOf(job, 'moved'))
    await to.storage.setMark(received)
  }
  const total = Sums.from(progress.sums).total
  return { move: job.move, outcome: keepSource ? 'copied' : 'moved', isResumed, entries: progress.sums, total }
}

/** It had been cut short between its last two steps, or is called once more: there is at most a mark to set. */
async function ended(job: Job, source: TransferMark): Promise<TransferReport> {
  if (source.state === 'moving') {
    await job.from.storage.setMark(job.keepSource === true ? undefined : markOf(job, 'moved'))
  }
  return { move: job.move, outcome: 'earlier', isResumed: false, entries: {}, total: 0 }
}

interface Before {
  readonly source: TransferMark | undefined
  readonly target: TransferMark | undefined
  /** What is in the target is an unfinished copy of this source. */
  readonly isOwnRest: boolean
}

/** Marks both sides first and checks afterwards, because an instance that starts does it the other way round. */
async function begin(job: Job, before: Before): Promise<Progress> {
  const { from, to } = job
  const outline = await from.storage.outline()
  const { now } = await to.storage.outline()
  const { firstOrder, lastOrder, lastToken } = outline
  const progress: Progress = {
    source: { at: outline.now, first: firstOrder, step: Math.max(Math.ceil((lastOrder - firstOrder) / ORDER_MAX), 1) },
    target: { at: now, first: 1, step: 1 },
    lastToken,
    lastOrder,
    cursor: undefined,
    isCopied: false,
    sums: {},
  }
  await to.storage.setMark(markOf(job, 'receiving', progress))
  try {
    if ((await from.storage.mark())?.move === job.move) throw sameStorage(job)
    await makeRoom(job, before)
    await from.storage.setMark(markOf(job, 'moving'))
    await mustBeUnused(job)
  } catch (error) {
    // A storage that has gone away keeps its mark; the next run sorts that out.
    await from.storage.setMark(before.isOwnRest ? undefined : before.source).catch(() => undefined)
    await to.storage.setMark(before.target).catch(() => undefined)
    throw error
  }
  return progress
}

/** The target has to be empty, or to hold nothing but an unfinished copy that is not wanted any more. */
async function makeRoom({ to, restart = false }: Job, { target, isOwnRest }: Before): Promise<void> {
  const counts = await to.storage.counts()
  const total = totalOf(counts)
  if (total === 0) return
  if (isOwnRest || (restart && target?.state === 'receiving')) {
    await to.storage.clear()
    return
  }
  const what = describedCounts(counts)
  if (target?.state === 'receiving') {
    throw refused(
      `${to.name} holds a part of an earlier transfer from ${target.other} (${what}), which can not go on: its source has been used since, or is another one. ` +
        'With --restart that part is deleted and everything is copied again.',
    )
  }
  throw refused(`${to.name} is not empty: it holds ${what}. Choose a new place for it, or empty it.`)
}

async function copy(job: Job, begun: Progress): Promise<Progress> {
  const { from, to, size, onProgress } = job
  const { source, target } = begun
  if (begun.isCopied) return begun
  const total = totalOf(await from.storage.counts())
  const sums = Sums.from(begun.sums)
  const read = async (cursor: string | undefined): Promise<TransferPage> =>
    to.storage.fitted(await from.storage.dump(source, cursor, size))
  onProgress?.({ phase: 'copying', done: sums.total, total })
  let reading = read(begun.cursor)
  for (;;) {
    const page = await reading
    sums.add(page)
    const isCopied = page.next === undefined
    const progress = { ...begun, cursor: page.next, isCopied, sums: sums.table() }
    // The next page is read while this one is written.
    const writing = to.storage.load(target, page, markOf(job, 'receiving', progress))
    if (!isCopied) reading = read(page.next)
    await Promise.all([writing, reading])
    onProgress?.({ phase: 'copying', done: sums.total, total })
    if (isCopied) return progress
  }
}

/** Reads everything back. */
async function check({ to, size, onProgress }: Job, progress: Progress): Promise<SumTable> {
  const total = Sums.from(progress.sums).total
  const sums = new Sums()
  let cursor: string | undefined
  do {
    const page = await to.storage.dump(progress.target, cursor, size)
    sums.add(page)
    cursor = page.next
    onProgress?.({ phase: 'checking', done: sums.total, total })
  } while (cursor !== undefined)
  return sums.table()
}

async function mustBeUnused({ from, to, force = false }: Job): Promise<void> {
  if (force) return
  for (const { storage, name } of [from, to]) {
    const users = await storage.users()
    if (users.length === 0) continue
    throw refused(
      `${name} is in use by ${users.join(', ')}. Stop all orchestrators first; one that was killed is known to be gone ` +
        'after half a minute. With --force the transfer does not look.',
    )
  }
}

/** An instance that was faster than the mark would have changed what had been read. */
async function mustBeUnchanged(job: Job, { lastOrder }: Progress): Promise<void> {
  await mustBeUnused(job)
  const { from } = job
  if ((await from.storage.outline()).lastOrder === lastOrder) return
  throw refused(
    `${from.name} has changed while it was being copied: an orchestrator was at work on it. ` +
      'Stop it and run the same command with --restart.',
  )
}

function mustBeSource(mark: TransferMark | undefined, { from, to }: TransferOptions): void {
  if (mark === undefined || mark.state === 'received') return
  if (mark.state === 'receiving') {
    throw refused(`${from.name} holds only a part of a transfer from ${mark.other}: finish that one first.`)
  }
  // Cut short before its first page: nothing has happened yet.
  if (mark.state === 'moving' && mark.other === to.name) return
  const state = mark.state === 'moved' ? 'was moved' : 'is being moved'
  throw refused(
    `${from.name} ${state} to ${mark.other} (${mark.since}). ` +
      'If that does not count any more, take the mark away with: impresario migrate --unmark <its address>.',
  )
}

function markOf(
  { move: id, run: own, since, from, to }: Job,
  state: TransferMark['state'],
  progress?: Progress,
): TransferMark {
  const other = state === 'moving' || state === 'moved' ? to.name : from.name
  return {
    state,
    move: id,
    run: own,
    other,
    since,
    ...(progress === undefined ? {} : { progress: JSON.stringify(progress) }),
  }
}

/** The boundary of what an earlier run has written down: only this file writes it. */
function progressOf({ progress }: TransferMark): Progress {
  if (progress === undefined) throw new Error('A mark on a target has lost its progress')
  return JSON.parse(progress) as Progress
}

function totalOf({ records, items }: EntryCounts): number {
  return [...Object.values(records), ...Object.values(items)].reduce((sum, count) => sum + count, 0)
}

function describedCounts({ records, items }: EntryCounts): string {
  return [
    ...Object.entries(records).map(([kind, count]) => `${count} ${kind} records`),
    ...Object.entries(items).map(([queue, count]) => `${count} items in ${queue}`),
  ].join(', ')
}

function sameStorage({ from, to }: TransferOptions): ImpresarioError {
  return refused(`${from.name} and ${to.name} are the same storage. Name two different ones.`)
}

function refused(message: string): ImpresarioError {
  return new ImpresarioError('INVALID_REQUEST', message)
}
