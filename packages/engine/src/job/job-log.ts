import { shownJobId } from '@impresario/core'
import type { Clock, Job, Log, LogFields, Service, TrailEntry } from '@impresario/core'
import { excerpt } from './excerpt.ts'
import { Pump } from '../service/pump.ts'

export interface JobLogOptions {
  readonly clock: Clock
  readonly log: Log
  /** The fields that lead from what happened to a job to its trace. */
  readonly traceNames?: ((job: Job, entry: TrailEntry) => LogFields) | undefined
}

type Level = 'info' | 'warn'

interface Line {
  readonly level: Level
  readonly message: string
}

/** What operators must hear of, and what people did. Everything else of a job's life is for those who debug. */
const LINES: Readonly<Record<string, Line>> = {
  task_failed: { level: 'warn', message: 'a task failed' },
  task_expired: { level: 'warn', message: 'no worker took a task in time' },
  task_abandoned: { level: 'warn', message: 'every worker that had a task fell silent' },
  branch_result_refused: { level: 'warn', message: 'the result of a branch was too large and was dropped' },
  state_failed: { level: 'warn', message: 'a handler failed' },
  job_quarantined: { level: 'warn', message: 'a job was put into quarantine' },
  job_failed: { level: 'warn', message: 'a job failed' },
  job_error: { level: 'warn', message: 'a job ended with an error' },
  result_ignored: { level: 'info', message: 'a result no longer counts and was ignored' },
  job_cancelled: { level: 'info', message: 'a job was cancelled' },
  job_retried: { level: 'info', message: 'a job was sent back from quarantine' },
  job_discarded: { level: 'info', message: 'a quarantined job was given up' },
  job_migrated: { level: 'info', message: 'a job goes on under another version of its blueprint' },
}

const REFUSED_RESULT: Line = { level: 'warn', message: 'a result does not fit into its job and was refused' }

/** Lines of one kind in one span; what comes beyond is counted. Ten tell what is wrong, and a thousand no more than that. */
export const JOB_LINES_MAX = 10
export const JOB_LINES_MS = 60_000
/** Kinds that are counted apart. Codes and blueprints are few; this is for those who make names up. */
const KINDS_MAX = 1_000
const MESSAGE_CHARS_MAX = 500
const IDLE_MS = 10_000

interface Kind {
  readonly fields: LogFields
  readonly level: Level
  since: number
  lines: number
  leftOut: number
}

/**
 * Tells the log what becomes of jobs: failures with everything that names them, the rest of their life to those who debug.
 *
 * A blueprint that fails ten thousand times a minute must not fill the disk. Lines of one kind, which is an event of a
 * blueprint with a code, are written ten times in a minute; the number of those that were left out follows when the minute
 * is over.
 */
export class JobLog implements Service {
  readonly name = 'job-log'
  readonly #options: JobLogOptions
  readonly #pump: Pump
  readonly #kinds = new Map<string, Kind>()

  constructor(options: JobLogOptions) {
    this.#options = options
    const { clock, log } = options
    const round = () => Promise.resolve({ worked: this.#closeKinds(JOB_LINES_MS), nextInMs: undefined })
    this.#pump = new Pump({ name: this.name, clock, log, idleMs: IDLE_MS, round })
  }

  start(): Promise<void> {
    return this.#pump.start()
  }

  async stop(): Promise<void> {
    await this.#pump.stop()
    this.#closeKinds(0)
  }

  tick(): Promise<{ readonly worked: number }> {
    return this.#pump.tick()
  }

  /** What happened to a job, after it was committed. */
  record(jobId: string, entries: readonly TrailEntry[], job: Job | undefined): void {
    const { log, traceNames } = this.#options
    let cause: TrailEntry | undefined
    for (const entry of entries) {
      if (entry.event.startsWith('task_')) cause = entry
      const line = lineOf(entry)
      if (line === undefined && log.isDebug !== true) continue
      const names = job === undefined ? undefined : traceNames?.(job, entry)
      const fields = { ...fieldsOf(jobId, isOfJob(entry) ? becauseOf(entry, cause) : entry, job), ...names }
      if (line === undefined) log.debug('job event', { event: entry.event, ...fields })
      else this.#write(line, entry, fields)
    }
  }

  #write({ level, message }: Line, { event }: TrailEntry, fields: LogFields): void {
    const kind = this.#kindOf(level, event, fields)
    if (kind.lines >= JOB_LINES_MAX) {
      kind.leftOut += 1
      return
    }
    kind.lines += 1
    this.#options.log[level](message, fields)
  }

  #kindOf(level: Level, event: string, { blueprint, code }: LogFields): Kind {
    const now = this.#options.clock.now()
    const key = JSON.stringify([event, blueprint, code])
    const known = this.#kinds.get(key)
    if (known !== undefined) {
      if (now - known.since >= JOB_LINES_MS) this.#beginAgain(known, now)
      return known
    }
    const isFull = this.#kinds.size >= KINDS_MAX
    const shared = isFull ? this.#kinds.get(OTHERS) : undefined
    if (shared !== undefined) return shared
    const fields = isFull ? {} : { event, blueprint, code }
    const kind: Kind = { fields, level, since: now, lines: 0, leftOut: 0 }
    this.#kinds.set(isFull ? OTHERS : key, kind)
    return kind
  }

  #beginAgain(kind: Kind, now: number): void {
    this.#tellLeftOut(kind, now)
    kind.since = now
    kind.lines = 0
    kind.leftOut = 0
  }

  #tellLeftOut({ fields, level, since, leftOut }: Kind, now: number): void {
    if (leftOut === 0) return
    const seconds = Math.round((now - since) / 1_000)
    this.#options.log[level]('more lines of the same kind were left out', { ...fields, count: leftOut, seconds })
  }

  /** Forgets the kinds whose span is over, and tells how many lines of them were left out. */
  #closeKinds(afterMs: number): number {
    const now = this.#options.clock.now()
    let told = 0
    for (const [key, kind] of this.#kinds) {
      if (now - kind.since < afterMs) continue
      this.#tellLeftOut(kind, now)
      this.#kinds.delete(key)
      told += 1
    }
    return told
  }
}

const OTHERS = 'others'

function lineOf({ event, code }: TrailEntry): Line | undefined {
  if (event === 'result_ignored' && code === 'too_large') return REFUSED_RESULT
  return Object.hasOwn(LINES, event) ? LINES[event] : undefined
}

/** What ended a job is named with the task, and its worker, whose end was in the same step. */
function becauseOf(entry: TrailEntry, cause: TrailEntry | undefined): TrailEntry {
  if (cause === undefined) return entry
  const { taskId, workerId, attempt } = cause
  return { ...entry, taskId, workerId, attempt }
}

function isOfJob({ event }: TrailEntry): boolean {
  return event.startsWith('job_')
}

function fieldsOf(jobId: string, entry: TrailEntry, job: Job | undefined): LogFields {
  const { taskId, workerId, attempt, state, durationMs, note } = entry
  const error = isOfJob(entry) ? job?.error : undefined
  const code = entry.code ?? error?.code
  const message = note ?? error?.message
  return {
    job_id: shownJobId(jobId),
    ...(taskId === undefined ? {} : { task_id: taskId }),
    ...(workerId === undefined ? {} : { worker_id: workerId }),
    ...(job === undefined ? {} : { blueprint: job.blueprint }),
    ...(state === undefined ? {} : { state }),
    ...(code === undefined ? {} : { code }),
    ...(attempt === undefined ? {} : { attempt }),
    ...(durationMs === undefined ? {} : { duration_ms: durationMs }),
    ...(message === undefined ? {} : { message: excerpt(message, MESSAGE_CHARS_MAX) }),
  }
}
