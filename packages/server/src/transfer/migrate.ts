import type { EntryCounts, Movable, MoveMark, PageSize } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { move } from './move.ts'
import type { MoveOptions, MoveReport } from './move.ts'
import { isSameDirectory, nameOf, openMovable } from './open-side.ts'

export interface MigrateOptions extends Pick<MoveOptions, 'force' | 'keepSource' | 'restart' | 'onProgress'> {
  /** Addresses, as in STORAGE_URL. */
  readonly from: string
  readonly to: string
  readonly size?: PageSize
}

/** What a move would find. */
export interface MigrationPlan {
  readonly from: string
  readonly to: string
  readonly source: EntryCounts
  /** Nothing: it would be made. */
  readonly target: EntryCounts | undefined
  readonly sourceMark: MoveMark | undefined
  readonly targetMark: MoveMark | undefined
  /** Who is at work on the source. */
  readonly users: readonly string[]
}

/** Moves everything from the one storage into the other; see `move`. */
export async function migrate({ from, to, ...options }: MigrateOptions): Promise<MoveReport> {
  return withBoth({ from, to, mayCreate: true }, (source, target) =>
    move({
      ...options,
      from: { storage: source, name: nameOf(from) },
      to: { storage: mustBeThere(target, to), name: nameOf(to) },
    }),
  )
}

/** Looks at both sides and changes nothing. */
export async function planMigration({ from, to }: Pick<MigrateOptions, 'from' | 'to'>): Promise<MigrationPlan> {
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

/** Takes the mark of a move away, so that orchestrators may start there again. Gives back what it was. */
export async function unmark(url: string, { force = false } = {}): Promise<MoveMark | undefined> {
  const storage = mustBeThere(await openMovable(url, false), url)
  try {
    const mark = await storage.mark()
    if (mark?.state === 'receiving' && !force) {
      throw new ImpresarioError(
        'INVALID_REQUEST',
        `${nameOf(url)} holds only a part of what is being moved there from ${mark.other}. Run that move again, with --restart ` +
          'if it cannot go on. With --force the mark is taken away all the same, and jobs will be missing.',
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
  use: (source: Movable, target: Movable | undefined) => Promise<T>,
): Promise<T> {
  if (isSameDirectory(from, to)) {
    throw new ImpresarioError('INVALID_REQUEST', `${nameOf(from)} and ${nameOf(to)} are the same directory.`)
  }
  const source = mustBeThere(await openMovable(from, false), from)
  try {
    const target = await openMovable(to, mayCreate)
    try {
      return await use(source, target)
    } finally {
      await target?.close()
    }
  } finally {
    await source.close()
  }
}

function mustBeThere(storage: Movable | undefined, url: string): Movable {
  if (storage !== undefined) return storage
  throw new ImpresarioError('NOT_FOUND', `There is no data of Impresario in ${nameOf(url)}. Check the address.`)
}
