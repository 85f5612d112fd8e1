import type { EntryCounts, Transferable, TransferMark, PageSize } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { transfer } from './transfer.ts'
import type { TransferOptions, TransferReport } from './transfer.ts'
import { isSameDirectory, nameOf, openTransferable } from './open-side.ts'

export interface StorageTransferOptions extends Pick<
  TransferOptions,
  'force' | 'keepSource' | 'restart' | 'onProgress'
> {
  /** Addresses, as in STORAGE_URL. */
  readonly from: string
  readonly to: string
  readonly size?: PageSize
}

/** What a transfer would find. */
export interface TransferPlan {
  readonly from: string
  readonly to: string
  readonly source: EntryCounts
  /** Nothing: it would be made. */
  readonly target: EntryCounts | undefined
  readonly sourceMark: TransferMark | undefined
  readonly targetMark: TransferMark | undefined
  /** Who is at work on the source. */
  readonly users: readonly string[]
}

/** Moves everything from the one storage into the other; see `transfer`. */
export async function transferStorage({ from, to, ...options }: StorageTransferOptions): Promise<TransferReport> {
  return withBoth({ from, to, mayCreate: true }, (source, target) =>
    transfer({
      ...options,
      from: { storage: source, name: nameOf(from) },
      to: { storage: mustBeThere(target, to), name: nameOf(to) },
    }),
  )
}

/** Looks at both sides and changes nothing. */
export async function planTransfer({ from, to }: Pick<StorageTransferOptions, 'from' | 'to'>): Promise<TransferPlan> {
  return withBoth({ from, to, mayCreate: false }, async (source, target) => ({
    from: nameOf(from),
    to: nameOf(to),
    source: await source.counts(),
    target: await target?.counts(),
    sourceMark: await source.mark(),
    targetMark: await target?.mark(),
    users: await source.users(),
  }))
}

/** Takes the mark of a transfer away, so that orchestrators may start there again. Gives back what it was. */
export async function unmark(url: string, { force = false } = {}): Promise<TransferMark | undefined> {
  const storage = mustBeThere(await openTransferable(url, false), url)
  try {
    const mark = await storage.mark()
    if (mark?.state === 'receiving' && !force) {
      throw new ImpresarioError(
        'INVALID_REQUEST',
        `${nameOf(url)} holds only a part of what is being moved there from ${mark.other}. Run that transfer again, with --restart ` +
          'if it cannot go on. With --force the mark is removed anyway, and jobs will be missing.',
      )
    }
    await storage.setMark(undefined)
    return mark
  } finally {
    await storage.close()
  }
}

async function withBoth<T>(
  { from, to, mayCreate }: { readonly from: string; readonly to: string; readonly mayCreate: boolean },
  use: (source: Transferable, target: Transferable | undefined) => Promise<T>,
): Promise<T> {
  if (isSameDirectory(from, to)) {
    throw new ImpresarioError('INVALID_REQUEST', `${nameOf(from)} and ${nameOf(to)} are the same directory.`)
  }
  const source = mustBeThere(await openTransferable(from, false), from)
  try {
    const target = await openTransferable(to, mayCreate)
    try {
      return await use(source, target)
    } finally {
      await target?.close()
    }
  } finally {
    await source.close()
  }
}

function mustBeThere(storage: Transferable | undefined, url: string): Transferable {
  if (storage !== undefined) return storage
  throw new ImpresarioError('NOT_FOUND', `There is no data of Impresario in ${nameOf(url)}. Check the address.`)
}
