import { parseDeliveryId } from '@impresario/core'
import type { Job, TrailEntry } from '@impresario/core'
import type { Soon } from '@impresario/protocol'
import type { Delivery, HistorySink, NewTraces, TurnTracing } from '@impresario/engine'
import type { Span } from './span.ts'
import type { SpansOptions } from './spans-options.ts'
import {
  contextOf,
  isPlainlyUnrecorded,
  jobSpanId,
  newTracing,
  parentSpanId,
  traceOf,
  trySpanId,
  UNRECORDED,
  unrecordedContext,
  visitSpanId,
} from './trace-identity.ts'
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
export class JobSpans implements TurnTracing, NewTraces {
  readonly #options: SpansOptions

  constructor(options: SpansOptions) {
    this.#options = options
  }

  begin(jobId: string): Job['tracing'] {
    const { sampling, rate, isOn } = this.#options
    if (!isOn()) return undefined
    return rate === undefined || rate.take() ? newTracing(jobId, sampling) : UNRECORDED
  }

  /** The same history, with spans made of what it is told. */
  traced(history: HistorySink): HistorySink {
    return {
      append: (jobId, job, entries) => {
        const { isOn, sampling } = this.#options
        if (job !== undefined && isOn() && !isPlainlyUnrecorded(job, sampling)) this.#follow(job, entries)
        history.append(jobId, job, entries)
      },
      appendWorker: (moment) => history.appendWorker(moment),
    }
  }

  /** What a worker is told of the trace: the try of the task that it holds is the parent of its work. */
  contextFor(delivery: Delivery): Job['tracing'] {
    const { jobId, taskId, idempotencyKey, attempt, tracing } = delivery
    const { isOn, sampling } = this.#options
    if (!isOn() || parseDeliveryId(taskId) === undefined) return tracing
    if (isPlainlyUnrecorded(delivery, sampling)) {
      // Of a trace that is not recorded no span is the parent of anything: what came with the job says enough. Without
      // anything a worker would begin a trace of its own.
      return tracing?.['traceparent'] === undefined ? unrecordedContext(jobId) : tracing
    }
    return { ...contextOf(traceOf({ id: jobId, tracing }, sampling), trySpanId(idempotencyKey, attempt)) }
  }

  /** Runs a handler. Adds no step before it or after it. */
  run<T>(job: Job, code: () => Soon<T>): Soon<T> {
    const { clock, sampling, newSpanId, within, isOn, hasLibraries } = this.#options
    if (!isOn() || (isPlainlyUnrecorded(job, sampling) && !hasLibraries())) return code()
    const trace = traceOf(job, sampling)
    const spanId = newSpanId()
    const startedAt = clock.now()
    if (!trace.isSampled) return within(trace, spanId, code)
    const end = (error?: string): void => this.#addRun(job, trace, { spanId, startedAt, error })
    const fail = (error: unknown): void => end(error instanceof Error ? error.message : 'The handler failed.')
    let running: Soon<T>
    try {
      running = within(trace, spanId, code)
    } catch (error) {
      fail(error)
      throw error
    }
    if (running instanceof Promise) running.then(() => end(), fail)
    else end()
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
      attributes: attributesOf(job, job.state, job.visit),
      error: run.error,
      links: links.length === 0 ? undefined : links,
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
    const attributes = attributesOf(job)
    attributes['job.status'] = job.status
    attributes['job.visits'] = job.visit
    this.#add(trace, {
      name: name === 'automation' ? 'Automation' : `Job:${name}`,
      kind: 'server',
      spanId: jobSpanId(job.id),
      parentId: parentSpanId(job, trace),
      startedAt: job.createdAt,
      endedAt: at,
      attributes,
      error: isGood ? undefined : error === undefined ? event : `${error.code}: ${error.message}`,
    })
  }

  #addVisit(trace: Trace, job: Job, visit: number, { at, state = '', durationMs = 0, nextState }: TrailEntry): void {
    const attributes = attributesOf(job, state, visit)
    if (nextState !== undefined) attributes['job.next_state'] = nextState
    this.#add(trace, {
      name: `State:${blueprintOf(job)}:${state}`,
      kind: 'internal',
      spanId: visitSpanId(job.id, visit),
      parentId: jobSpanId(job.id),
      startedAt: at - durationMs,
      endedAt: at,
      attributes,
    })
  }

  #addTry(trace: Trace, job: Job, entry: TrailEntry): void {
    const { at, event, state = '', note = '', workerId, taskId, attempt = 1, durationMs = 0, code } = entry
    const origin = taskId === undefined ? undefined : originOf(job.id, taskId)
    if (taskId === undefined || origin === undefined) return
    const type = typeOf(job, origin, entry)
    const attributes = attributesOf(job, state)
    attributes['task.id'] = taskId
    attributes['task.attempt'] = attempt
    if (type !== undefined) attributes['task.type'] = type
    if (workerId !== undefined) attributes['worker.id'] = workerId
    if (code !== undefined) attributes['error.type'] = code
    this.#add(trace, {
      name: type === undefined ? 'Task' : `Task:${type}`,
      kind: 'producer',
      spanId: trySpanId(taskId, attempt),
      parentId: visitSpanId(job.id, origin.visit),
      startedAt: at - durationMs,
      endedAt: at,
      attributes,
      error: event === 'task_finished' ? undefined : note,
    })
  }

  #add({ traceId, traceState }: Trace, span: Omit<Span, 'traceId' | 'traceState'>): void {
    const { name, kind, spanId, parentId, startedAt, endedAt, attributes, links } = span
    const error = span.error?.slice(0, ERROR_CHARS_MAX)
    const { add } = this.#options
    add({ name, kind, traceId, traceState, spanId, parentId, startedAt, endedAt, attributes, error, links })
  }
}

type Attributes = Record<string, string | number>

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

/** Written one by one: five of them are made for each job, and copies of objects were a tenth of the cost of tracing. */
function attributesOf({ id, blueprint, client }: Job, state?: string, visit?: number): Attributes {
  const attributes: Attributes = { 'job.id': id, 'client.id': client.id }
  if (blueprint.startsWith(AUTOMATION)) attributes['automation.id'] = blueprint.slice(AUTOMATION.length)
  else attributes['job.blueprint'] = blueprint
  if (state !== undefined) attributes['job.current_state'] = state
  if (visit !== undefined) attributes['job.visit'] = visit
  return attributes
}
