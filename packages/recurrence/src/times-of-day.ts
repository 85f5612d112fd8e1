/**
 * Times of a day as all combinations of hours, minutes and seconds, in order, without building a list of up to 86,400.
 */
export class TimesOfDay {
  readonly hours: readonly number[]
  readonly minutes: readonly number[]
  readonly seconds: readonly number[]
  readonly size: number

  /** Each list in ascending order, without repetition, not empty. */
  constructor(hours: readonly number[], minutes: readonly number[], seconds: readonly number[]) {
    this.hours = hours
    this.minutes = minutes
    this.seconds = seconds
    this.size = hours.length * minutes.length * seconds.length
  }

  /** The time at a position, in milliseconds since midnight. */
  at(index: number): number {
    const { hours, minutes, seconds } = this
    const second = seconds[index % seconds.length] ?? 0
    const minute = minutes[Math.floor(index / seconds.length) % minutes.length] ?? 0
    const hour = hours[Math.floor(index / (seconds.length * minutes.length))] ?? 0
    return ((hour * 60 + minute) * 60 + second) * 1_000
  }

  /** The position of the first time later than this one; `size` if there is none. */
  indexAfter(timeMs: number): number {
    if (timeMs < 0) return 0
    const total = Math.floor(timeMs / 1_000)
    const [hour, minute, second] = [Math.floor(total / 3_600), Math.floor(total / 60) % 60, total % 60]
    const { hours, minutes, seconds } = this
    const perHour = minutes.length * seconds.length
    const h = countBelow(hours, hour)
    if (hours[h] !== hour) return h * perHour
    const m = countBelow(minutes, minute)
    if (minutes[m] !== minute) return h * perHour + m * seconds.length
    return h * perHour + m * seconds.length + countBelow(seconds, second + 1)
  }
}

/** How many of these ascending numbers are smaller. The lists are short. */
function countBelow(values: readonly number[], limit: number): number {
  let count = 0
  while (count < values.length && (values[count] ?? limit) < limit) count += 1
  return count
}
