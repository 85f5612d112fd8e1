import { DAY_MS, ImpresarioError } from '@impresario/protocol'
import { dayNumber } from './calendar.ts'

/**
 * A time zone: which local time belongs to an instant, and which instant to a local time.
 *
 * Local times are numbers too: the milliseconds since 1970 that a clock on the wall there would mean if it were in UTC.
 * The rules of the zones come from the language's own `Intl`, so they are as new as the runtime.
 */
export class Zone {
  readonly name: string
  readonly #format: Intl.DateTimeFormat

  constructor(name: string) {
    this.name = name
    try {
      this.#format = new Intl.DateTimeFormat('en-US', {
        timeZone: name,
        calendar: 'gregory',
        numberingSystem: 'latn',
        hourCycle: 'h23',
        year: 'numeric',
        month: 'numeric',
        day: 'numeric',
        hour: 'numeric',
        minute: 'numeric',
        second: 'numeric',
      })
    } catch (error) {
      throw new ImpresarioError(
        'INVALID_CONFIGURATION',
        `There is no time zone "${name}". Use a name such as UTC or Europe/Berlin.`,
        { details: { time_zone: name }, cause: error },
      )
    }
  }

  /** How far local time is ahead of UTC at this instant. */
  offsetMs(at: number): number {
    return this.localOf(at) - at
  }

  /** What a clock there shows at this instant. */
  localOf(at: number): number {
    const parts = new Map(this.#format.formatToParts(at).map(({ type, value }) => [type, value]))
    const read = (type: Intl.DateTimeFormatPartTypes): number => Number(parts.get(type))
    const dayNo = dayNumber({ year: read('year'), month: read('month'), day: read('day') })
    const seconds = (read('hour') * 60 + read('minute')) * 60 + read('second')
    // The format knows no fractions of a second, and rounds down.
    return dayNo * DAY_MS + seconds * 1_000 + (at - Math.floor(at / 1_000) * 1_000)
  }

  /**
   * When a clock there shows this time. A time that comes twice, because the clock is put back, means the first of the
   * two. A time that never comes, because the clock is put forward over it, means the moment when it is put forward.
   */
  instantOf(local: number): number {
    // No offset is a day long, so one of these lies before any change that could concern this time, and one behind it.
    const before = this.offsetMs(local - DAY_MS)
    const after = this.offsetMs(local + DAY_MS)
    const first = local - Math.max(before, after)
    if (before === after || this.localOf(first) === local) return first
    const second = local - Math.min(before, after)
    return this.localOf(second) === local ? second : this.#changeBetween(first, second, after)
  }

  /** The first moment in (from, to] with the new offset. */
  #changeBetween(from: number, to: number, offsetMs: number): number {
    let [low, high] = [from, to]
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.offsetMs(middle) === offsetMs) high = middle
      else low = middle
    }
    return high
  }
}
