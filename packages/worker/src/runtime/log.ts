import { createTimestamp, withoutControls } from '@impresario/protocol'

type Fields = Readonly<Record<string, unknown>>

export interface Log {
  debug(message: string, fields?: Fields): void
  info(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  error(message: string, fields?: Fields): void
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** On the error stream: standard output belongs to the worker's own program. */
export function stderrLog(format: 'text' | 'json', least: keyof Log, timeZone = 'UTC'): Log {
  const from = LEVELS.indexOf(least)
  const stamp = stampIn(timeZone)
  const writer = (level: keyof Log) => {
    if (LEVELS.indexOf(level) < from) return () => undefined
    return (message: string, fields: Fields = {}): void => {
      const time = stamp(Date.now())
      process.stderr.write(
        `${format === 'json' ? json(time, level, message, fields) : text(time, level, message, fields)}\n`,
      )
    }
  }
  return { debug: writer('debug'), info: writer('info'), warn: writer('warn'), error: writer('error') }
}

/** `TZ` may name a zone in ways that only the operating system knows. That is no reason to run without a log. */
function stampIn(timeZone: string): (ms: number) => string {
  try {
    return createTimestamp(timeZone)
  } catch {
    return createTimestamp('UTC')
  }
}

function json(time: string, level: string, message: string, fields: Fields): string {
  const own = { time, level, message }
  // A field of the same name does not pass for ours.
  return JSON.stringify({ ...own, ...fields, ...own })
}

function text(time: string, level: string, message: string, fields: Fields): string {
  const { stack, ...short } = fields
  const said = Object.entries(short).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`)
  // A stack is for people: one line for each of its own.
  const lines = typeof stack === 'string' ? stack.split('\n').map((line) => `\n    ${withoutControls(line)}`) : []
  return `${time} ${level.toUpperCase().padEnd(5)} ${withoutControls(message)}${said.join('')}${lines.join('')}`
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
