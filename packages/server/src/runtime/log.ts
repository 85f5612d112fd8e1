import { pino } from 'pino'
import type { DestinationStream } from 'pino'
import type { Log, LogFields } from '@impresario/core'
import { createTimestamp, withoutControls } from '@impresario/protocol'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
export type WrittenLevel = Exclude<LogLevel, 'silent'>

export interface LogOptions {
  readonly level: LogLevel
  readonly format: 'json' | 'text'
  readonly timeZone: string
  readonly instance: string
  /** Where lines go; standard output without it. */
  readonly destination?: DestinationStream
}

/** A log whose level can be changed while the process runs. */
export interface LeveledLog extends Log {
  readonly level: LogLevel
  setLevel(level: LogLevel): void
}

export function isLeveled(log: Log): log is LeveledLog {
  return 'setLevel' in log
}

/** What must never be read in a log, wherever a field of that name stands. */
export const SECRETS: readonly string[] = [
  'token',
  'authorization',
  'password',
  'secret',
  'access_token',
  'refresh_token',
  'signature',
]

/** One JSON object per line. Written synchronously: the last lines of a process that dies are the ones that matter. */
export function createLog(options: LogOptions): LeveledLog {
  const { format, timeZone, instance } = options
  let { level } = options
  const stamp = createTimestamp(timeZone)
  const out = options.destination ?? pino.destination({ dest: 1, sync: true })
  const logger = pino(
    {
      level,
      base: { instance },
      messageKey: 'msg',
      timestamp: () => `,"time":"${stamp(Date.now())}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRETS.flatMap((name) => [name, `*.${name}`]), censor: '[hidden]' },
    },
    format === 'json' ? out : { write: (line: string) => out.write(textLine(line)) },
  )
  return {
    get isDebug() {
      return level === 'debug'
    },
    get level() {
      return level
    },
    setLevel(wanted) {
      level = wanted
      logger.level = wanted
    },
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
  }
}

/** The same line for people: time, level, message, then what else there is. */
function textLine(line: string): string {
  const { time, level, msg, instance: _, ...rest } = JSON.parse(line) as Record<string, unknown>
  const fields = Object.entries(rest).map(([key, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return ` ${key}=${shownText(key, text)}`
  })
  return `${String(time)} ${String(level).toUpperCase().padEnd(5)} ${shownText('msg', String(msg))}${fields.join('')}\n`
}

/**
 * Texts come from outside too, such as the message of an error. None of them may begin a line of its own, which could be
 * taken for one of ours, nor steer the terminal. A stack has many lines; those after its first are set in.
 */
function shownText(key: string, text: string): string {
  const lines = key === 'stack' ? text.split('\n') : [text]
  return lines.map(withoutControls).join('\n    ')
}

export const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

export function errorFields(error: unknown): LogFields {
  if (!(error instanceof Error)) return { error: String(error) }
  const code = 'code' in error ? { code: error.code } : {}
  return { error: error.message, ...code, stack: error.stack }
}
