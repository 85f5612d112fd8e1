import { isJsonObject, LIMITS } from '@impresario/protocol'
import type { JsonObject, LogLineLevel, WireLogLine } from '@impresario/protocol'
import type { Log } from '../runtime/log.ts'

type Fields = Readonly<Record<string, unknown>>

/** The log of one task: every line goes to the worker's own log, and the newest travel with the result. */
export class TaskLog implements Log {
  readonly #log: Log
  readonly #names: Fields
  readonly #kept: { readonly line: WireLogLine; readonly bytes: number }[] = []
  #bytes = 0

  /** `names`: the fields that say which task it is. */
  constructor(log: Log, names: Fields) {
    this.#log = log
    this.#names = names
  }

  get lines(): readonly WireLogLine[] {
    return this.#kept.map(({ line }) => line)
  }

  debug(message: string, fields?: Fields): void {
    this.#write('debug', message, fields)
  }

  info(message: string, fields?: Fields): void {
    this.#write('info', message, fields)
  }

  warn(message: string, fields?: Fields): void {
    this.#write('warn', message, fields)
  }

  error(message: string, fields?: Fields): void {
    this.#write('error', message, fields)
  }

  #write(level: LogLineLevel, message: string, fields: Fields = {}): void {
    this.#log[level](message, { ...fields, ...this.#names })
    const text = message.slice(0, LIMITS.jobLogMessageCharsMax)
    const line: WireLogLine = { timestamp: Date.now() / 1_000, level, message: text, ...sentFields(fields) }
    const bytes = Buffer.byteLength(JSON.stringify(line))
    this.#kept.push({ line, bytes })
    this.#bytes += bytes
    while (this.#kept.length > LIMITS.taskLogLinesMax || this.#bytes > LIMITS.taskLogBytesMax) {
      this.#bytes -= this.#kept.shift()?.bytes ?? 0
    }
  }
}

/** What cannot be written as JSON, or is too long, stays in the worker's own log. */
function sentFields(fields: Fields): { readonly fields?: JsonObject } {
  try {
    const text = JSON.stringify(fields)
    if (text === '{}' || Buffer.byteLength(text) > LIMITS.jobLogFieldsBytesMax) return {}
    const copy: unknown = JSON.parse(text)
    return isJsonObject(copy) ? { fields: copy } : {}
  } catch {
    return {}
  }
}
