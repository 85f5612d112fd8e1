import type { Clock } from './runtime.ts'

/** The time of day, for everything that the outside compares with its own clock: signatures, links, tokens, calendars. */
export function wallTime(clock: Clock): number {
  return clock.wall?.() ?? clock.now()
}
