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
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' })
  for (const [unit, size] of UNITS) {
    if (Math.abs(delta) >= size) return format.format(Math.trunc(delta / size), unit)
  }
  return format.format(0, 'second')
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

export function clockTime(seconds: number, language: string): string {
  return new Intl.DateTimeFormat(language, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    hour12: false,
  }).format(seconds * 1_000)
}

/** `820 ms`, `3.2 s`, `4 m 10 s`, `2 h 5 m`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return '–'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const seconds = ms / 1_000
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} m ${Math.round(seconds % 60)} s`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours} h ${minutes % 60} m` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

export function bytes(count: number): string {
  if (count < 1_024) return `${count} B`
  const [value, unit] = count < 1_048_576 ? [count / 1_024, 'kB'] : [count / 1_048_576, 'MB']
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`
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
