import { DAY_MS } from '@impresario/protocol'
import { patternMatcher } from '../config/patterns.ts'
import type { DocumentsConfig } from '../config/config.ts'

export const PRIORITIES = { low: 0, normal: 1, high: 2 } as const

const SMALL_BYTES = 1_000_000
const LARGE_BYTES = 10_000_000

export interface FileFacts {
  readonly size: number
  readonly mtimeMs: number
}

/** A rule of the configuration decides; without one, what is small and new comes first and what is large comes last. */
export function priorityRule({
  priorities,
}: Pick<DocumentsConfig, 'priorities'>): (path: string, facts: FileFacts) => number {
  const isHigh = patternMatcher(priorities.high)
  const isNormal = patternMatcher(priorities.normal)
  const isLow = patternMatcher(priorities.low)
  return (path, { size, mtimeMs }) => {
    if (isHigh(path)) return PRIORITIES.high
    if (isLow(path)) return PRIORITIES.low
    if (isNormal(path)) return PRIORITIES.normal
    if (size > LARGE_BYTES) return PRIORITIES.low
    return size <= SMALL_BYTES && Date.now() - mtimeMs < DAY_MS ? PRIORITIES.high : PRIORITIES.normal
  }
}
