import { exclusionOf, UNRESTRICTED } from './calendars/restriction.ts'
import type { Restriction } from './calendars/restriction.ts'
import { clockTime, isoDate, isoInstant, isoLocal, isoOffset } from './moment.ts'
import { dayOf, timeOf } from './civil.ts'
import type { Occurrence } from './series.ts'
import type { Trigger } from './trigger.ts'
import type { Stretch } from './zone.ts'
import { LIMITS } from './limits.ts'

/** A time at which something will happen. */
export interface Firing {
  readonly at: number
  /** `2026-03-29T03:00:00+03:00` */
  readonly local: string
  /** What is worth knowing about it: that a clock change moved it, for example. */
  readonly notes: readonly string[]
}

/** A time that the rule names and at which nothing happens. */
export interface LeftOut {
  readonly at: number
  readonly local: string
  readonly reason: string
}

export interface Preview {
  readonly words: readonly string[]
  readonly firings: readonly Firing[]
  /** In order, up to the last firing. */
  readonly leftOut: readonly LeftOut[]
  /** There are more left out than are listed. */
  readonly isMoreLeftOut: boolean
  /** The series ends with the last of these firings. */
  readonly isComplete: boolean
}

export interface PreviewInput {
  /** Any of these makes it happen. */
  readonly triggers: readonly Trigger[]
  readonly restriction?: Restriction | undefined
  readonly after: number
  readonly count: number
}

const LEFT_OUT_MAX = 100
/** So many occurrences that calendars leave out are looked at before the preview ends. */
const EXCLUDED_MAX = 2_000

/** The next firings, and what does not happen until then, with reasons. */
export function preview(input: PreviewInput): Preview {
  const { triggers, after, restriction = UNRESTRICTED } = input
  const count = Math.min(Math.max(0, input.count), LIMITS.preview)
  const firings: Firing[] = []
  const leftOut: LeftOut[] = []
  let [last, isComplete, excluded] = [after, false, 0]
  while (firings.length < count && excluded < EXCLUDED_MAX) {
    const next = nextOf(triggers, last)
    if (next === undefined) {
      isComplete = true
      break
    }
    const { occurrence, trigger } = next
    const exclusion = exclusionOf(restriction, occurrence.at)
    last = occurrence.at
    if (exclusion === undefined) {
      firings.push(firingOf(occurrence, trigger))
      continue
    }
    excluded += 1
    if (leftOut.length <= LEFT_OUT_MAX) {
      leftOut.push({ ...shown(occurrence.at, trigger), reason: reasonOf(exclusion.calendar, exclusion.label) })
    } else last = Math.max(last, exclusion.until - 1)
  }
  if (firings.length > 0 || isComplete) {
    const upTo = firings.at(-1)?.at ?? last
    leftOut.push(...droppedUpTo(triggers, after, upTo), ...excludedUpTo(triggers, after, isComplete ? Infinity : upTo))
  }
  leftOut.sort((a, b) => a.at - b.at)
  return {
    words: triggers.map(({ words }) => words),
    firings,
    leftOut: leftOut.slice(0, LEFT_OUT_MAX),
    isMoreLeftOut: leftOut.length > LEFT_OUT_MAX,
    isComplete: isComplete || nextOf(triggers, last) === undefined,
  }
}

function nextOf(
  triggers: readonly Trigger[],
  after: number,
): { readonly occurrence: Occurrence; readonly trigger: Trigger } | undefined {
  let earliest: { readonly occurrence: Occurrence; readonly trigger: Trigger } | undefined
  for (const trigger of triggers) {
    const occurrence = trigger.series.next(after)
    if (occurrence !== undefined && (earliest === undefined || occurrence.at < earliest.occurrence.at)) {
      earliest = { occurrence, trigger }
    }
  }
  return earliest
}

/** `2026-03-29T03:00:00+03:00` */
function zonedTime(at: number, trigger: Pick<Trigger, 'zone'>): string {
  const offsetMs = trigger.zone.offsetMs(at)
  return `${isoLocal(at + offsetMs)}${isoOffset(offsetMs)}`
}

function shown(at: number, trigger: Trigger): { readonly at: number; readonly local: string } {
  return { at, local: zonedTime(at, trigger) }
}

function reasonOf(calendar: string, label: string | undefined): string {
  if (label === undefined) return `Outside of the calendar "${calendar}".`
  return label === calendar ? `In the calendar "${calendar}".` : `In the calendar "${calendar}": ${label}.`
}

function firingOf({ at, local }: Occurrence, trigger: Trigger): Firing {
  const { zone } = trigger
  const isMoved = zone.localOf(at) !== local && trigger.kind !== 'every'
  const gap = isMoved ? zone.gapAt(local) : undefined
  return {
    ...shown(at, trigger),
    notes: [...(gap === undefined ? [] : [gapNote(local, gap)]), ...foldNotes(at, trigger)],
  }
}

function gapNote(local: number, { from, offsetMs, offsetBeforeMs }: Stretch): string {
  const ends = [from + offsetBeforeMs, from + offsetMs]
  const isOneDay = dayOf(from + offsetBeforeMs) === dayOf(from + offsetMs)
  const [before, behind] = ends.map((end) =>
    isOneDay ? clockTime(timeOf(end)) : `${isoDate(dayOf(end))} ${clockTime(timeOf(end))}`,
  )
  return `${clockTime(timeOf(local))} does not exist on that day: the clock goes from ${before} to ${behind}.`
}

function foldNotes(at: number, { zone, kind }: Trigger): readonly string[] {
  if (kind === 'every') return []
  const local = zone.localOf(at)
  const [first, second] = zone.instantsOf(local)
  if (first === undefined || second === undefined) return []
  return [`${clockTime(timeOf(local))} comes twice on that day; this is the ${at === first ? 'first' : 'second'}.`]
}

function excludedUpTo(triggers: readonly Trigger[], after: number, upTo: number): readonly LeftOut[] {
  return triggers.flatMap((trigger) =>
    trigger
      .excluded({ after, upTo, max: LEFT_OUT_MAX + 1 })
      .map(({ at }) => ({ ...shown(at, trigger), reason: 'Left out by an EXDATE of the rule.' })),
  )
}

function droppedUpTo(triggers: readonly Trigger[], after: number, upTo: number): readonly LeftOut[] {
  return triggers.flatMap((trigger) => {
    const from = Number.isFinite(after) ? after : (trigger.series.next(after)?.at ?? upTo)
    return trigger.dropped({ after: from, upTo, max: LEFT_OUT_MAX }).map(({ local }) => {
      const gap = trigger.zone.gapAt(local)
      const at = gap?.from ?? local
      return {
        at,
        local: isoLocal(local),
        reason: gap === undefined ? `No such time before ${isoInstant(at)}.` : gapNote(local, gap),
      }
    })
  })
}
