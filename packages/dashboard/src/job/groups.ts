import type { Span } from './path.ts'

/** Many of the same kind in one stay, as one row. */
export interface Group extends Span {
  readonly spans: readonly Span[]
  readonly failed: number
}

export type Row = Span | Group

/** More than so many are shown together until somebody opens them. */
const ALONE_MAX = 6

export function isGroup(row: Row): row is Group {
  return 'spans' in row
}

/** The rows of a timeline: fan-outs are one row each, and those that are open show their parts below. */
export function groupedRows(spans: readonly Span[], open: ReadonlySet<string>): readonly Row[] {
  const rows: Row[] = []
  for (let from = 0; from < spans.length;) {
    const head = spans[from]
    let until = from + 1
    while (until < spans.length && spans[until]?.kind !== 'state') until += 1
    if (head !== undefined) rows.push(...(head.kind === 'state' ? [head] : []), ...rowsOf(spans, from, until, open))
    from = until
  }
  return rows
}

/** Of one stay. A group stands where the first of its parts would. */
function rowsOf(spans: readonly Span[], from: number, until: number, open: ReadonlySet<string>): readonly Row[] {
  const parts = new Map<string, Span[]>()
  for (let at = from; at < until; at += 1) {
    const span = spans[at]
    if (span === undefined || span.kind === 'state') continue
    const key = `${span.kind} ${span.name}`
    const known = parts.get(key)
    if (known === undefined) parts.set(key, [span])
    else known.push(span)
  }
  return [...parts.values()].flatMap((same) => {
    if (same.length <= ALONE_MAX) return same
    const group = groupOf(same)
    return open.has(group.id) ? [group, ...same] : [group]
  })
}

function groupOf(spans: readonly Span[]): Group {
  const [first] = spans
  if (first === undefined) throw new Error('A group has parts.')
  let { from, until } = first
  let failed = 0
  for (const span of spans) {
    from = Math.min(from, span.from)
    until = until === undefined || span.until === undefined ? undefined : Math.max(until, span.until)
    if (span.isBad) failed += 1
  }
  return {
    ...first,
    id: `group ${first.id}`,
    from,
    until,
    worker: undefined,
    note: undefined,
    isBad: failed === spans.length,
    spans,
    failed,
  }
}
