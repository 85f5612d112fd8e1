import { dirname, join } from 'node:path'
import type { Clock, Job, Log, TrailEntry } from '@impresario/core'
import type { EngineSettings, HistorySink, WorkerMoment } from '@impresario/engine'
import { openHistory } from '@impresario/history'
import type { History, HistoryEvent } from '@impresario/history'
import { DAY_MS, HOUR_MS, LIMITS, isImpresarioError, snakeName } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'
import { invalid } from '../config/config.ts'
import { makeDirectory } from '../config/data-directory.ts'
import type { HistorySettings } from '../config/history-keys.ts'
import { errorFields } from '../runtime/log.ts'
import { cutSnapshot, jobSnapshot } from './snapshot.ts'
import { workerBody } from '../worker-protocol/wire-worker.ts'

export interface HistoryServiceOptions {
  readonly clock: Clock
  readonly log: Log
  /** Where the storage lies, if it is one of files. */
  readonly directory: string | undefined
}

/** The history of this server, and what the engine writes to it. */
export interface HistoryService {
  readonly history: History
  readonly sink: HistorySink
  /** Whether every event of jobs is kept, and not only what their records do not hold. */
  readonly isComplete: boolean
}

const MB = 1_048_576

/**
 * Opens the history. One that the configuration names has to work, and gets everything. Without a name it is a small one
 * beside the storage, for what a job's own record does not hold, so that the path of every step stays as short as it is: to
 * write everything down takes as much CPU as a job that does nothing. Should that one not open, the server runs without it.
 */
export function openHistoryService(settings: HistorySettings, options: HistoryServiceOptions): HistoryService {
  const { historyDatabaseUri: uri, historyRetentionDays: days, historyMaxMb, historyBufferEvents: bufferMax } = settings
  const { clock, log, directory } = options
  const retention = { ageMs: spanMs(days) ?? Number.POSITIVE_INFINITY, bytesMax: historyMaxMb * MB }
  const open = (place: string): History => openHistory(place, { clock, log, retention, bufferMax })
  if (uri === 'off') return { history: open('memory:'), sink: NO_SINK, isComplete: false }
  const { historySnapshotBytes: bytesMax } = settings
  if (uri !== '') return { ...withSink(openNamed(uri, open), fullAppend, bytesMax), isComplete: true }
  if (directory === undefined || directory === '') return withSink(open('memory:'), remainingAppend, bytesMax)
  try {
    return withSink(open(`sqlite:${join(directory, 'history.db')}`), remainingAppend, bytesMax)
  } catch (error) {
    log.error('the history beside the storage cannot be used and is kept in memory', errorFields(error))
    return withSink(open('memory:'), remainingAppend, bytesMax)
  }
}

function openNamed(uri: string, open: (uri: string) => History): History {
  try {
    const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(uri)?.[1]
    if (file !== undefined) makeDirectory('HISTORY_DATABASE_URI', dirname(file))
    return open(uri)
  } catch (error) {
    if (isImpresarioError(error)) throw error
    // Without the address: it may hold a password.
    const reason = error instanceof Error ? error.message : String(error)
    throw invalid(`HISTORY_DATABASE_URI names a history that cannot be opened: ${reason}`, error)
  }
}

/** How long the engine keeps what nothing needs any more. */
export function retentionOf(settings: HistorySettings): Partial<EngineSettings> {
  const { jobRetentionDays, idempotencyKeyHours, maxOpenJobsPerClient, maxOpenJobs } = settings
  const { maxOpenJobsBytesPerClient: bytesPerClientMax, maxOpenJobsBytes: bytesTotalMax } = settings
  return {
    retention: { endedJobMs: spanMs(jobRetentionDays), keyMs: idempotencyKeyHours * HOUR_MS },
    backlog: { perClientMax: maxOpenJobsPerClient, totalMax: maxOpenJobs, bytesPerClientMax, bytesTotalMax },
  }
}

/** Zero days are no end at all. */
function spanMs(days: number): number | undefined {
  return days === 0 ? undefined : days * DAY_MS
}

const NO_SINK: HistorySink = { append: () => undefined, appendWorker: () => undefined }

/** What happened to a job in one step. */
interface Step {
  readonly jobId: string
  readonly job: Job | undefined
  readonly entries: readonly TrailEntry[]
}

type Append = (history: History, step: Step, bytesMax: number) => void

function withSink(history: History, append: Append, bytesMax: number): HistoryService {
  const sink: HistorySink = {
    append: (jobId, job, entries) => append(history, { jobId, job, entries }, bytesMax),
    appendWorker: (moment) => history.append([workerEvent(moment)]),
  }
  return { history, sink, isComplete: false }
}

/** Everything. Moments of one step share what the job looked like after it. */
function fullAppend(history: History, { jobId, job, entries }: Step, bytesMax: number): void {
  const owner = job?.client.id
  const blueprint = job?.blueprint
  const whole = job && jobSnapshot(job, bytesMax)
  const cut = job && cutSnapshot(job)
  const wholeFrom = entries.length - wholeCount(whole, entries.length)
  history.append(
    entries.map((entry, index) => ({ ...entry, jobId, owner, blueprint, snapshot: index < wholeFrom ? cut : whole })),
  )
}

/** A fan-out is a thousand events in one step: together they keep no more than this of the job. */
function wholeCount(snapshot: JsonObject | undefined, entries: number): number {
  if (snapshot === undefined || entries <= FEW_ENTRIES) return entries
  return Math.max(1, Math.floor(LIMITS.historyStepBytesMax / Buffer.byteLength(JSON.stringify(snapshot))))
}

const FEW_ENTRIES = 8

/** What stands in no record: results that came too late. Nearly every call ends with the look at the name. */
function remainingAppend(history: History, { jobId, job, entries }: Step, bytesMax: number): void {
  for (const entry of entries) {
    if (entry.event !== 'result_ignored') continue
    const snapshot = job && jobSnapshot(job, bytesMax)
    history.append([{ ...entry, jobId, owner: job?.client.id, blueprint: job?.blueprint, snapshot }])
  }
}

function isSmall(value: Json): boolean {
  return Buffer.byteLength(JSON.stringify(value)) <= LIMITS.historyWorkerBytesMax
}

function workerEvent({ at, event, worker, changed }: WorkerMoment): HistoryEvent {
  const { load: _, seen_at: __, ...said } = workerBody(worker, 0)
  const snapshot = isSmall(said) ? said : { status: worker.status, reputation: worker.reputation }
  const note = changed?.map(snakeName).join(', ')
  return { at, event, workerId: worker.id, note, snapshot }
}
