import type { Clock, Log, LogFields } from '@impresario/core'
import { wallTime } from '@impresario/core'
import { isLeveled, LOG_LEVELS } from '../runtime/log.ts'
import type { LeveledLog, WrittenLevel } from '../runtime/log.ts'
import { logRecord } from './log-record.ts'
import type { LogRecord } from './log-record.ts'

/** Lines that are kept until it is known where they go: those of the start. */
const EARLY_MAX = 1_000

/**
 * Gives every line that a log writes to the exporter too. The level of the log decides for both, also after it was changed.
 *
 * `new`, *keeping* → `attach` → *passing on* → `detach` → *off*. Without an exporter it ends with `detach` alone.
 */
export class LogFeed {
  /** To be used instead of the log that was given. Has a level if that one has. */
  readonly log: Log
  readonly #inner: Log
  readonly #clock: Clock
  #early: LogRecord[] | undefined = []
  #add: ((record: LogRecord) => void) | undefined

  constructor(inner: Log, clock: Clock) {
    this.#inner = inner
    this.#clock = clock
    const writer = (level: WrittenLevel) => (message: string, fields?: LogFields) => this.#write(level, message, fields)
    const lines = { debug: writer('debug'), info: writer('info'), warn: writer('warn'), error: writer('error') }
    this.log = isLeveled(inner) ? leveled(inner, lines) : plain(inner, lines)
  }

  attach(add: (record: LogRecord) => void): void {
    this.#add = add
    for (const record of this.#early ?? []) add(record)
    this.#early = undefined
  }

  detach(): void {
    this.#add = undefined
    this.#early = undefined
  }

  #write(level: WrittenLevel, message: string, fields: LogFields | undefined): void {
    this.#inner[level](message, fields)
    if ((this.#add === undefined && this.#early === undefined) || !isWritten(this.#inner, level)) return
    const record = logRecord(wallTime(this.#clock), level, message, fields)
    if (this.#add !== undefined) this.#add(record)
    else if (this.#early !== undefined && this.#early.length < EARLY_MAX) this.#early.push(record)
  }
}

function isWritten(log: Log, level: WrittenLevel): boolean {
  if (isLeveled(log)) return LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(log.level)
  return level !== 'debug' || log.isDebug === true
}

type Lines = Pick<Log, WrittenLevel>

/** The properties are read anew each time: a level can change. */
function plain(inner: Log, lines: Lines): Log {
  return {
    ...lines,
    get isDebug() {
      return inner.isDebug === true
    },
  }
}

function leveled(inner: LeveledLog, lines: Lines): LeveledLog {
  return {
    ...lines,
    get isDebug() {
      return inner.isDebug === true
    },
    get level() {
      return inner.level
    },
    setLevel: (level) => inner.setLevel(level),
  }
}
