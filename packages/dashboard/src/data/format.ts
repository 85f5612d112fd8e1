import { useEffect, useState } from 'react'

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

/** `3 minutes ago`, `in 2 days`. Times of the API are Unix seconds. */
export function relative(seconds: number, now: number, language: string): string {
  const delta = seconds - now / 1_000
  const [unit, size] = UNITS.find((one) => Math.abs(delta) >= one[1]) ?? ['second', Infinity]
  // What is 47 hours away is not "tomorrow", and two days that have just begun are two. An age is counted in whole units.
  const count = delta > 0 ? Math.round(delta / size) : Math.trunc(delta / size)
  // In Spanish the short month is "m", as if it were minutes, and in Russian the short day has no forms.
  const style = unit === 'second' || unit === 'minute' || unit === 'hour' ? 'short' : 'long'
  const format = new Intl.RelativeTimeFormat(language, { numeric: count === 0 ? 'auto' : 'always', style })
  return format.format(count, unit)
}

export function absolute(seconds: number, language: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' }).format(seconds * 1_000)
}

/** A local time with its offset (`2026-11-18T09:00:00+01:00`) as it stands on the wall there. */
export function wallTime(local: string, language: string): string {
  const wall = Date.parse(`${local.slice(0, 19)}Z`)
  if (Number.isNaN(wall)) return local
  const style = { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' } as const
  return new Intl.DateTimeFormat(language, { ...style, hourCycle: 'h23', timeZone: 'UTC' }).format(wall)
}

/** A moment as it stands on the wall in a time zone. */
export function zoneTime(seconds: number, timeZone: string, language: string): string {
  const style = { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' } as const
  try {
    return new Intl.DateTimeFormat(language, { ...style, hourCycle: 'h23', timeZone }).format(seconds * 1_000)
  } catch {
    // The browser knows fewer zones than the server.
    return absolute(seconds, language)
  }
}

export function clockTime(seconds: number, language: string): string {
  return new Intl.DateTimeFormat(language, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    hour12: false,
  }).format(seconds * 1_000)
}

type Unit = SpanUnit | 'kilobyte' | 'megabyte'
type SpanUnit = 'millisecond' | 'second' | 'minute' | 'hour' | 'day'

/** They are costly to make, and a long list needs them for each row. */
const UNIT_FORMATS = new Map<string, Intl.NumberFormat>()

function inUnit(value: number, unit: Unit, language: string): string {
  const key = `${language} ${unit}`
  const format =
    UNIT_FORMATS.get(key) ??
    new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: 1 })
  UNIT_FORMATS.set(key, format)
  return format.format(value)
}

/** A span in the words of the language: `820 ms`, `3.2 sec`, `4 min 10 sec`, `2 hr 5 min`, `3 days 4 hr`. */
export function duration(ms: number, language: string): string {
  if (!Number.isFinite(ms) || ms < 0) return '–'
  const say = (value: number, unit: SpanUnit): string => inUnit(value, unit, language)
  const pair = (whole: number, unit: SpanUnit, rest: number, small: SpanUnit): string =>
    rest === 0 ? say(whole, unit) : `${say(whole, unit)} ${say(rest, small)}`
  if (ms < 1_000) return say(Math.round(ms), 'millisecond')
  const seconds = ms / 1_000
  if (seconds < 60) return say(seconds < 10 ? Math.floor(seconds * 10) / 10 : Math.floor(seconds), 'second')
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return pair(minutes, 'minute', Math.floor(seconds % 60), 'second')
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return pair(hours, 'hour', minutes % 60, 'minute')
  return pair(Math.floor(hours / 24), 'day', hours % 24, 'hour')
}

/** `63 B`, `1.4 kB`, `24 kB`, `1 MB`, in the words of the language. */
export function bytes(count: number, language: string): string {
  if (count < 1_024) return `${count} ${language === 'ru' ? 'Б' : 'B'}`
  const [value, unit] =
    count < 1_048_576 ? [count / 1_024, 'kilobyte' as const] : [count / 1_048_576, 'megabyte' as const]
  return inUnit(value < 10 ? value : Math.round(value), unit, language)
}

/** The part of an id that tells it from its neighbours. */
export function shortId(id: string): string {
  return id.length > 16 ? id.slice(-12) : id
}

/** The present, again every second while the page can be seen. */
export function useNow(everyMs = 1_000): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now())
    }, everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}
