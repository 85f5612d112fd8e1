import type { EventCountQuery } from './history.ts'

export interface Span {
  /** As requested. */
  readonly from: number
  readonly since: number
  readonly until: number
}

/** The spans between the edges, except those that end before `since`. */
export function spansOf({ edges, since = 0 }: EventCountQuery): readonly Span[] {
  return edges.slice(1).flatMap((until, index) => {
    const from = edges[index] ?? 0
    return until > since ? [{ from, since: Math.max(from, since), until }] : []
  })
}
