import { parseDeliveryId } from '@impresario/core'
import type { Job, TrailEntry } from '@impresario/core'
import type { Delivery, HistorySink, TurnTracing } from '@impresario/engine'
import type { Span } from './span.ts'
import type { SpansOptions } from './spans-options.ts'
import { contextOf, jobSpanId, parentSpanId, traceOf, trySpanId, visitSpanId } from './trace-identity.ts'
import type { Trace } from './trace-identity.ts'

const JOB_ENDS = new Set(['job_finished', 'job_failed', 'job_error', 'job_cancelled'])
const TASK_ENDS = new Set(['task_finished', 'task_failed', 'task_expired', 'task_abandoned'])
/** Each automation has a blueprint of its own, named after its id: their spans have one name. */
const AUTOMATION = 'automation/'
const ERROR_CHARS_MAX = 1_000

/**
 * Makes spans of what happens to jobs: the job, its states, its handlers' runs, the tries of its tasks. Each is made when it
 * ends, from the moments that the engine tells the history, so that a restart or another instance in between loses none.
 */
export class JobSpans implements TurnTracing {
  readonly #options: SpansOptions

  constructor(options: SpansOptions) {
    this.#options = options
  }

  /** The same history, with spans made of what it is told. */
  traced(history: HistorySink): HistorySink {
    return {
      append: (jobId, job, entries) => {
        if (job !== undefined && this.#options.isOn()) this.#follow(job, entries)
        history.append(jobId, job, entries)
      },
      appendWorker: (moment) => history.appendWorker(moment),
    }
  }

  /** What a worker is told of the trace: the try of the task that it holds is the parent of its work. */
  contextFor({ jobId, taskId, idempotencyKey, attempt, tracing }: Delivery): Readonly<Record<string, string>> {
    if (!this.#options.isOn() || parseDeliveryId(taskId) === undefined) return tracing
    const trace = traceOf({ id: jobId, tracing }, this.#options.sampling)
    return { ...contextOf(trace, trySpanId(idempotencyKey, attempt)) }
  }

  /** Runs a handler. Adds no step before it or after it. */
  run<T>(job: Job, code: () => Promise<T>): Promise<T> {
    const { clock, sampling, newSpanId, within, isOn } = this.#options
    if (!isOn()) return code()
    const trace = traceOf(job, sampling)
    const spanId = newSpanId()
    const startedAt = clock.now()
    const running = within(trace, spanId, code)
    if (!trace.isSampled) return running
    const end = (error?: string): void => this.#addRun(job, trace, { spanId, startedAt, error })
    void running.then(
      () => end(),
      (error: unknown) => end(error instanceof Error ? error.message : 'The handler failed.'),
    )
    return running
  }

  #addRun(
    job: Job,
    trace: Trace,
    run: { readonly spanId: string; readonly startedAt: number; readonly error: string | undefined },
  ): void {
    const links = linksOf(job)
    this.#add(trace, {
      name: `JobExecutor:${blueprintOf(job)}:${job.state}`,
      kind: 'internal',
      spanId: run.spanId,
      parentId: visitSpanId(job.id, job.visit),
      startedAt: run.startedAt,
      endedAt: this.#options.clock.now(),
      attributes: { ...attributesOf(job), 'job.current_state': job.state, 'job.visit': job.visit },
      error: run.error,
      ...(links.length === 0 ? {} : { links }),
    })
  }

  #follow(job: Job, entries: readonly TrailEntry[]): void {
    const trace = traceOf(job, this.#options.sampling)
    if (!trace.isSampled) return
    let finished: number | undefined
    for (const entry of entries) {
      if (entry.event === 'state_finished' && entry.visit !== undefined) {
        finished = entry.visit
        this.#addVisit(trace, job, entry.visit, entry)
      }
      if (TASK_ENDS.has(entry.event)) this.#addTry(trace, job, entry)
      if (!JOB_ENDS.has(entry.event)) continue
      // A state that the job ends in, or that it is taken out of, is not told of as finished.
      const durationMs = entry.at - (job.enteredAt ?? job.createdAt)
      if (finished !== job.visit) this.#addVisit(trace, job, job.visit, { ...entry, state: job.state, durationMs })
      this.#addJob(trace, job, entry)
    }
  }

  #addJob(trace: Trace, job: Job, { at, event }: TrailEntry): void {
    const { error } = job
    const isGood = event === 'job_finished' || event === 'job_cancelled'
    const name = blueprintOf(job)
    this.#add(trace, {
      name: name === 'automation' ? 'Automation' : `Job:${name}`,
      kind: 'server',
      spanId: jobSpanId(job.id),
      parentId: parentSpanId(job, trace),
      startedAt: job.createdAt,
      endedAt: at,
      attributes: { ...attributesOf(job), 'job.status': job.status, 'job.visits': job.visit },
      error: isGood ? undefined : error === undefined ? event : `${error.code}: ${error.message}`,
    })
  }

  #addVisit(trace: Trace, job: Job, visit: number, { at, state = '', durationMs = 0, nextState }: TrailEntry): void {
    this.#add(trace, {
      name: `State:${blueprintOf(job)}:${state}`,
      kind: 'internal',
      spanId: visitSpanId(job.id, visit),
      parentId: jobSpanId(job.id),
      startedAt: at - durationMs,
      endedAt: at,
      attributes: {
        ...attributesOf(job),
        'job.current_state': state,
        'job.visit': visit,
        ...(nextState === undefined ? {} : { 'job.next_state': nextState }),
      },
    })
  }

  #addTry(trace: Trace, job: Job, entry: TrailEntry): void {
    const { at, event, state = '', note = '', workerId, taskId, attempt = 1, durationMs = 0, code } = entry
    const origin = taskId === undefined ? undefined : originOf(job.id, taskId)
    if (taskId === undefined || origin === undefined) return
    const type = typeOf(job, origin, entry)
    this.#add(trace, {
      name: type === undefined ? 'Task' : `Task:${type}`,
      kind: 'producer',
      spanId: trySpanId(taskId, attempt),
      parentId: visitSpanId(job.id, origin.visit),
      startedAt: at - durationMs,
      endedAt: at,
      attributes: {
        ...attributesOf(job),
        'job.current_state': state,
        'task.id': taskId,
        'task.attempt': attempt,
        ...(type === undefined ? {} : { 'task.type': type }),
        ...(workerId === undefined ? {} : { 'worker.id': workerId }),
        ...(code === undefined ? {} : { 'error.type': code }),
      },
      error: event === 'task_finished' ? undefined : note,
    })
  }

  #add({ traceId, traceState }: Trace, span: Omit<Span, 'traceId' | 'traceState'>): void {
    this.#options.add({ ...span, traceId, traceState, error: span.error?.slice(0, ERROR_CHARS_MAX) })
  }
}

interface TaskOrigin {
  readonly visit: number
  readonly branch: string
}

/** Where a task belongs: its id is that of the job, the visit and the branch. */
function originOf(jobId: string, taskId: string): TaskOrigin | undefined {
  const [visit = '', ...branch] = taskId.slice(jobId.length + 1).split('.')
  return taskId.startsWith(`${jobId}.`) && /^\d+$/.test(visit)
    ? { visit: Number(visit), branch: branch.join('.') }
    : undefined
}

/** The branch says it as long as it is there; after that the note of the moment begins with it. */
function typeOf(job: Job, { visit, branch }: TaskOrigin, { event, note = '' }: TrailEntry): string | undefined {
  const call = job.visit === visit ? job.branches[branch]?.call : undefined
  if (call?.kind === 'task') return call.type
  return event === 'task_finished' || event === 'task_failed' ? note.split(' ', 1)[0] : undefined
}

/** A fan-in follows from the state that sent its branches out: their spans hang from that one. */
function linksOf({ id, aggregationResults = {} }: Job): readonly string[] {
  const visits = Object.keys(aggregationResults).map((taskId) => originOf(id, taskId)?.visit)
  return [...new Set(visits)].filter((visit) => visit !== undefined).map((visit) => visitSpanId(id, visit))
}

function blueprintOf({ blueprint }: Job): string {
  return blueprint.startsWith(AUTOMATION) ? 'automation' : blueprint
}

function attributesOf({ id, blueprint, client }: Job): Readonly<Record<string, string>> {
  return {
    'job.id': id,
    ...(blueprint.startsWith(AUTOMATION)
      ? { 'automation.id': blueprint.slice(AUTOMATION.length) }
      : { 'job.blueprint': blueprint }),
    'client.id': client.id,
  }
}
