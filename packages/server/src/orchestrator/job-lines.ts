import type { Clock, Job, Log, LogFields, LogsOfJobs, Storage } from '@impresario/core'
import { shownJobId, wallTime } from '@impresario/core'
import { isJsonObject, LIMITS, LOG_LINE_LEVELS } from '@impresario/protocol'
import type { JsonObject, LogLineBody, LogLineLevel } from '@impresario/protocol'
import { errorFields } from '../runtime/log.ts'

export interface JobLinesOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly log: Log
  /** How long ended jobs are kept; `undefined`: for ever. */
  readonly endedJobMs: number | undefined
  /** The fields that lead to the trace of a job. */
  readonly traceNames?: ((job: Job) => LogFields) | undefined
}

interface Pending {
  readonly lines: LogLineBody[]
  bytes: number
}

const FLUSH_MS = 500
/** A job may run for long after its newest line. */
const OPEN_JOB_MS = 30 * 86_400_000
const TRIES = 5

/**
 * What handlers (`context.log`) and workers (`task.log`) write about jobs. Each line of a handler goes to the server's log at
 * once; the newest lines of each job are kept with it. They are gathered in memory and stored twice a second, so a crash
 * loses at most half a second of them, and nobody waits for them.
 */
export class JobLines implements LogsOfJobs {
  readonly #options: JobLinesOptions
  readonly #pending = new Map<string, Pending>()
  #pendingBytes = 0
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> | undefined

  constructor(options: JobLinesOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      void this.flush()
    }, FLUSH_MS).unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    await this.flush()
  }

  /** The log of one run of a handler. */
  open(job: Job): Log {
    const { log, traceNames } = this.#options
    const { id, blueprint, state } = job
    let names: LogFields | undefined
    const writer = (level: LogLineLevel) => (message: string, fields?: LogFields) => {
      names ??= { job_id: shownJobId(id), blueprint, state, ...traceNames?.(job) }
      log[level](message, { ...fields, ...names })
      this.#add(id, { ...this.#line(level, message, fields), source: 'handler', state })
    }
    return { debug: writer('debug'), info: writer('info'), warn: writer('warn'), error: writer('error') }
  }

  /** What came with a result of a worker. Whatever is no line is left out. */
  addFromWorker(jobId: string, names: { readonly taskId: string; readonly workerId: string }, lines: unknown): void {
    if (!Array.isArray(lines)) return
    for (const given of lines.slice(-LIMITS.taskLogLinesMax) as readonly unknown[]) {
      if (!isJsonObject(given)) continue
      const { level, message, fields, timestamp } = given
      const known = LOG_LINE_LEVELS.find((one) => one === level)
      if (known === undefined || typeof message !== 'string') continue
      const line = this.#line(known, message, isJsonObject(fields) ? fields : undefined)
      const at = typeof timestamp === 'number' && Number.isFinite(timestamp) ? { timestamp } : {}
      this.#add(jobId, { ...line, ...at, source: 'worker', task_id: names.taskId, worker_id: names.workerId })
    }
  }

  /** The newest lines of a job, oldest first. */
  async read(jobId: string): Promise<readonly LogLineBody[]> {
    await this.flush()
    return (await this.#options.storage.read('log', jobId))?.value.lines ?? []
  }

  /** Stores what was written so far. Never rejects. */
  flush(): Promise<void> {
    if (this.#flushing !== undefined) return this.#flushing.then(() => this.flush())
    if (this.#pending.size === 0) return Promise.resolve()
    this.#flushing = this.#storeAll().finally(() => {
      this.#flushing = undefined
    })
    return this.#flushing
  }

  #line(level: LogLineLevel, message: string, fields: LogFields | undefined): Omit<LogLineBody, 'source'> {
    const text = message.slice(0, LIMITS.jobLogMessageCharsMax)
    return { timestamp: wallTime(this.#options.clock) / 1_000, level, message: text, ...keptFields(fields) }
  }

  #add(jobId: string, line: LogLineBody): void {
    const bytes = bytesOf(line)
    if (this.#pendingBytes + bytes > LIMITS.jobLogPendingBytesMax) return
    const pending = this.#pending.get(jobId) ?? { lines: [], bytes: 0 }
    this.#pending.set(jobId, pending)
    pending.lines.push(line)
    pending.bytes += bytes
    this.#pendingBytes += bytes
    if (pending.lines.length <= LIMITS.jobLogLinesMax) return
    const dropped = pending.lines.shift()
    const gone = dropped === undefined ? 0 : bytesOf(dropped)
    pending.bytes -= gone
    this.#pendingBytes -= gone
  }

  async #storeAll(): Promise<void> {
    const all = [...this.#pending]
    this.#pending.clear()
    this.#pendingBytes = 0
    for (const [jobId, { lines }] of all) {
      try {
        await this.#store(jobId, lines)
      } catch (error) {
        this.#options.log.warn('lines of a job could not be kept', { job_id: shownJobId(jobId), ...errorFields(error) })
      }
    }
  }

  async #store(jobId: string, lines: readonly LogLineBody[]): Promise<void> {
    const { storage, endedJobMs } = this.#options
    const expires = endedJobMs === undefined ? {} : { expiresMs: endedJobMs + OPEN_JOB_MS }
    for (let tries = 0; tries < TRIES; tries += 1) {
      const stored = await storage.read('log', jobId)
      // Lines of a worker come with its result, which may be after what the next handler wrote.
      const all = [...(stored?.value.lines ?? []), ...lines].toSorted((a, b) => a.timestamp - b.timestamp)
      const value = { lines: newest(all) }
      const put = { kind: 'log', id: jobId, value, version: (stored?.version ?? 0) + 1, ...expires } as const
      if ((await storage.commit({ put: [put] })) === 'committed') return
    }
    throw new Error('Other instances write about the same job all the time.')
  }
}

function newest(lines: readonly LogLineBody[]): readonly LogLineBody[] {
  let bytes = 0
  let first = lines.length
  while (first > 0 && lines.length - first < LIMITS.jobLogLinesMax) {
    const line = lines[first - 1]
    bytes += line === undefined ? 0 : bytesOf(line)
    if (bytes > LIMITS.jobLogBytesMax) break
    first -= 1
  }
  return lines.slice(first)
}

function bytesOf(line: LogLineBody): number {
  return Buffer.byteLength(JSON.stringify(line))
}

/** What cannot be written as JSON, or is too long, is in the server's own log only. */
function keptFields(fields: LogFields | undefined): { readonly fields?: JsonObject } {
  if (fields === undefined) return {}
  try {
    const text = JSON.stringify(fields)
    if (text === '{}' || Buffer.byteLength(text) > LIMITS.jobLogFieldsBytesMax) return {}
    const copy: unknown = JSON.parse(text)
    return isJsonObject(copy) ? { fields: copy } : {}
  } catch {
    return {}
  }
}
