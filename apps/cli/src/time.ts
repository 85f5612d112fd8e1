const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A span of seconds, as short as people say it. */
export function span(seconds: number): string {
  if (seconds < 0.9995) return `${Math.round(Math.max(0, seconds) * 1000)} ms`
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  if (seconds < MINUTE - 0.5) return `${Math.round(seconds)} s`
  if (seconds < HOUR - MINUTE / 2) return `${Math.round(seconds / MINUTE)} min`
  if (seconds < DAY - HOUR / 2) return `${Math.round(seconds / HOUR)} h`
  return `${Math.round(seconds / DAY)} d`
}

/** How long ago a moment was, both in Unix seconds. */
export function ago(at: number, now: number): string {
  const seconds = now - at
  return seconds < 1 ? 'now' : `${span(seconds)} ago`
}

export function nowSeconds(): number {
  return Date.now() / 1000
}

/** A moment in Unix seconds as people here read it: `2026-01-31 12:00:05`, in the time zone of this machine. */
export function localTime(seconds: number): string {
  const at = new Date(seconds * 1000)
  const two = (value: number): string => String(value).padStart(2, '0')
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${date} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

/** When a moment will be, or that it has been. */
export function until(at: number, now: number): string {
  return at > now ? `in ${span(at - now)}` : ago(at, now)
}
