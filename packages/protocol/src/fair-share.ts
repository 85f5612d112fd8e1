import { LIMITS } from './limits.ts'

/**
 * How many bytes the next of many records may have, where all together may have `bytesMax` and `count` are there already.
 *
 * Nothing has to be summed up, and so nothing can get out of step. The n-th record that is there was written when n - 1 others
 * were, and so has at most `bytesMax / n`: all together have `bytesMax × (1 + ln(n / n₀))`, where n₀ is how many of the largest
 * size have room. For the bounds here that is some ten times `bytesMax` at the worst, and usual records never notice.
 */
export function fairShare(bytesMax: number, count: number): number {
  return Math.max(0, bytesMax / (count + 1) - LIMITS.recordBytesMin)
}
