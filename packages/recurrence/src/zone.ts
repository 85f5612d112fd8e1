import { DAY_MS, SECOND_MS } from '@impresario/protocol'
import { ERA_DAYS, dayNumber } from './civil.ts'
import { offsetIn } from './moment.ts'
import { quoted, refusal } from './refusal.ts'

/**
 * The meaning of a local time that does not exist because clocks are put forward over it: `first` is the moment of the
 * change (02:30 is 03:00 in the new time), `shift` is as long after that moment as the local time is after the start of
 * the gap (02:30 is 03:30; RFC 5545 §3.3.5), `drop` is no time at all (RFC 5545 §3.3.10).
 */
export type Gap = 'first' | 'shift' | 'drop'

/** The meaning of a local time that occurs twice because clocks are put back: the first of the two, or the second. */
export type Fold = 'first' | 'second'

/** A period in which the offset of a zone is constant. */
export interface Stretch {
  /** Its first instant. */
  readonly from: number
  /** The first instant after it. */
  readonly to: number
  /** How far local time is ahead of UTC. */
  readonly offsetMs: number
  /** The same, just before `from`. Larger: clocks were put back. Smaller: they were put forward. */
  readonly offsetBeforeMs: number
}

/** Stretches are computed and cached in windows of this length. */
const WINDOW_MS = 366 * DAY_MS
/**
 * The sampling interval of the clock. A change that is reverted within less would be missed. The shortest time between
 * two changes in the time-zone database is just under four days (Freetown, 1939), seven days since 1970.
 */
const STEP_MS = 6 * DAY_MS
const STEP_BEFORE_1970_MS = 3 * DAY_MS
/** No zone has ever been further than 16 hours from UTC. */
const OFFSET_MAX_MS = DAY_MS
/**
 * From here on the rules of all zones depend only on the calendar, which repeats. The last table in tzdata ends in
 * 2087.
 */
const REPEATS_FROM = dayNumber(2_200, 1, 1) * DAY_MS
const ERA_MS = ERA_DAYS * DAY_MS
/** About 6 kB each. A search through centuries clears the cache instead of keeping all of them. */
const WINDOWS_MAX = 1_024

/**
 * A time zone: which local time belongs to an instant, and which instant to a local time.
 *
 * Local times are numbers too: the milliseconds since 1970 of the same clock reading in UTC. The rules come from the
 * language's own `Intl`, so they are as new as the runtime. `Intl` takes microseconds for one lookup and does not
 * report when clocks change. The results are cached, and a lookup then costs nanoseconds.
 */
export class Zone {
  readonly name: string
  readonly #format: Intl.DateTimeFormat | undefined
  readonly #fixed: Stretch | undefined
  readonly #windows = new Map<number, readonly Stretch[]>()
  #latest: Stretch

  constructor(name: string) {
    this.name = name
    const offsetMs = fixedOffset(name)
    if (offsetMs === undefined) this.#format = formatFor(name)
    else {
      this.#fixed = { from: -Infinity, to: Infinity, offsetMs, offsetBeforeMs: offsetMs }
    }
    this.#latest = this.#fixed ?? { from: 0, to: 0, offsetMs: 0, offsetBeforeMs: 0 }
  }

  /** The stretch around an instant. A long one may be split into several parts with the same offset. */
  stretchAt(at: number): Stretch {
    if (at >= this.#latest.from && at < this.#latest.to) return this.#latest
    const eras = at < REPEATS_FROM ? 0 : Math.floor((at - REPEATS_FROM) / ERA_MS)
    const found = this.#find(at - eras * ERA_MS)
    this.#latest = eras === 0 ? found : movedBy(found, eras * ERA_MS)
    return this.#latest
  }

  /** How far local time is ahead of UTC at this instant. */
  offsetMs(at: number): number {
    return this.stretchAt(at).offsetMs
  }

  /** The local time at this instant. */
  localOf(at: number): number {
    return at + this.offsetMs(at)
  }

  /** All instants with this local time, in order: usually one, none in a gap, two in a fold. */
  instantsOf(local: number): readonly number[] {
    return this.#stretchesAround(local)
      .filter(({ from, to, offsetMs }) => local - offsetMs >= from && local - offsetMs < to)
      .map(({ offsetMs }) => local - offsetMs)
  }

  /** The clock change that skips this local time: the stretch that begins with it. */
  gapAt(local: number): Stretch | undefined {
    return this.#stretchesAround(local).find(
      ({ from, offsetMs, offsetBeforeMs }) => local >= from + offsetBeforeMs && local < from + offsetMs,
    )
  }

  /** The instant of this local time, by the given rules; `undefined` for a time that is dropped. */
  instantOf(local: number, rules: { readonly gap: 'first' | 'shift'; readonly fold: Fold }): number
  instantOf(local: number, rules: { readonly gap: Gap; readonly fold: Fold }): number | undefined
  instantOf(local: number, rules: { readonly gap: Gap; readonly fold: Fold }): number | undefined {
    const instants = this.instantsOf(local)
    const unambiguous = rules.fold === 'first' ? instants[0] : instants.at(-1)
    if (unambiguous !== undefined || rules.gap === 'drop') return unambiguous
    const gap = this.gapAt(local)
    if (gap === undefined) return undefined
    return rules.gap === 'first' ? gap.from : local - gap.offsetBeforeMs
  }

  #stretchesAround(local: number): readonly Stretch[] {
    const found = [this.stretchAt(local - OFFSET_MAX_MS)]
    for (let last = found[0]; last !== undefined && last.to <= local + OFFSET_MAX_MS; last = found.at(-1)) {
      found.push(this.stretchAt(last.to))
    }
    return found
  }

  #find(at: number): Stretch {
    if (this.#fixed !== undefined) return this.#fixed
    const index = Math.floor(at / WINDOW_MS)
    const stretches = this.#windows.get(index) ?? this.#lookAround(index)
    return stretches.findLast(({ from }) => from <= at) ?? broken(`No stretch of ${this.name} at ${at}.`)
  }

  #lookAround(index: number): readonly Stretch[] {
    const [begin, end] = [index * WINDOW_MS, (index + 1) * WINDOW_MS]
    // A change shortly before counts as the beginning: an hour may be repeated across the border of two windows.
    let from = begin
    let offsetMs = this.#ask(begin)
    let offsetBeforeMs = this.#ask(begin - DAY_MS)
    if (offsetBeforeMs !== offsetMs) from = this.#changeBetween(begin - DAY_MS, begin, offsetMs)
    const stretches: Stretch[] = []
    const stepMs = begin < 0 ? STEP_BEFORE_1970_MS : STEP_MS
    for (let last = begin; last < end; last = Math.min(last + stepMs, end)) {
      const probe = Math.min(last + stepMs, end)
      const then = this.#ask(probe)
      if (then === offsetMs) continue
      const to = this.#changeBetween(last, probe, then)
      if (to === end) break
      stretches.push({ from, to, offsetMs, offsetBeforeMs })
      ;[from, offsetBeforeMs, offsetMs] = [to, offsetMs, then]
    }
    stretches.push({ from, to: end, offsetMs, offsetBeforeMs })
    if (this.#windows.size >= WINDOWS_MAX) this.#windows.clear()
    this.#windows.set(index, stretches)
    return stretches
  }

  /** The first second in (from, to] with the new offset. */
  #changeBetween(from: number, to: number, offsetMs: number): number {
    let [low, high] = [from / SECOND_MS, to / SECOND_MS]
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.#ask(middle * SECOND_MS) === offsetMs) high = middle
      else low = middle
    }
    return high * SECOND_MS
  }

  /** `1/1/2026, GMT+03:00`; plain `GMT` for no offset; with seconds where a zone used local solar time. */
  #ask(at: number): number {
    const text = this.#format?.format(at) ?? 'GMT'
    const [, sign, hours, minutes, seconds = '0'] = /GMT([+-])(\d+):(\d+)(?::(\d+))?$/.exec(text) ?? []
    if (sign === undefined) return 0
    const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * SECOND_MS
    return sign === '-' ? -ms : ms
  }
}

/** Zones by name, each created once: a new one costs a quarter of a millisecond and some hundred kilobytes. */
export class Zones {
  readonly #zones = new Map<string, Zone>()

  named(name: string): Zone {
    const known = this.#zones.get(name)
    if (known !== undefined) return known
    const zone = new Zone(name)
    // There are about 600 names. More than that can only be other spellings of them.
    if (this.#zones.size >= 1_000) this.#zones.clear()
    this.#zones.set(name, zone)
    return zone
  }
}

function movedBy({ from, to, offsetMs, offsetBeforeMs }: Stretch, ms: number): Stretch {
  return { from: from + ms, to: to + ms, offsetMs, offsetBeforeMs }
}

function fixedOffset(name: string): number | undefined {
  if (/^(UTC|GMT|Z|Etc\/(UTC|GMT))$/i.test(name)) return 0
  return /^[+-]\d{2}:\d{2}$/.test(name) ? offsetIn(name) : undefined
}

function formatFor(name: string): Intl.DateTimeFormat {
  try {
    if (name.length > 64 || !/^[A-Za-z]/.test(name)) throw new RangeError('no name')
    return new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'gregory',
      numberingSystem: 'latn',
      timeZoneName: 'longOffset',
    })
  } catch {
    throw refusal('timezone', `There is no time zone ${quoted(name)}. Use a name such as UTC or Europe/Berlin.`)
  }
}

function broken(message: string): never {
  throw new Error(message)
}
