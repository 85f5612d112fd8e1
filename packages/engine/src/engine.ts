import { isEnded, isRepeated, strategiesWith, taskId } from '@impresario/core'
import type {
  Put,
  Batch,
  Clock,
  DecisionDetails,
  CommandEvent,
  Explanation,
  FilesOfJobs,
  Job,
  JobRequest,
  Listing,
  ListQuery,
  Log,
  LogsOfJobs,
  Random,
  Service,
  Storage,
  Stored,
  Strategy,
  TrailEntry,
  TaskCall,
} from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import type { JsonObject, TaskError } from '@impresario/protocol'
import type { Admission } from './job/admission.ts'
import { ChangeFeed } from './job/change-feed.ts'
import type { Changes } from './job/change-feed.ts'
import { BACKGROUND_DEFAULTS, createBackground } from './background/background.ts'
import type { Background, BackgroundSettings } from './background/background.ts'
import type { Retention } from './job/batch.ts'
import type { BacklogBounds } from './job/backlog.ts'
import { ScriptRegistry } from './job/script-registry.ts'
import type { BlueprintSource } from './job/script-registry.ts'
import { whereaboutsOf, workOf } from './workers/job-work.ts'
import type { JobWork, TaskWhereabouts } from './workers/job-work.ts'
import { Desk } from './workers/desk.ts'
import type { WorkerEventNews } from './workers/desk-messages.ts'
import { Director } from './job/director.ts'
import type { Commanded } from './job/director.ts'
import { Dispatcher } from './workers/dispatcher.ts'
import { Executor } from './turns/executor.ts'
import { JobCreation } from './job/job-creation.ts'
import type { Beside, Created, NewJob, NewTraces } from './job/job-creation.ts'
import { KeyBook } from './job/key-book.ts'
import { JobLog } from './job/job-log.ts'
import type { JobLogOptions } from './job/job-log.ts'
import { isAwaited, JobNews } from './job/job-news.ts'
import { EventPost } from './job/event-post.ts'
import type { EventRequest, Published, SentToJob } from './job/event-post.ts'
import type { Leadership, LedService } from './service/leadership.ts'
import { Handover } from './workers/handover.ts'
import { Holdings } from './workers/holdings.ts'
import { Parking } from './workers/parking.ts'
import { Postman } from './background/postman.ts'
import type { WorkerMoment } from './workers/roster.ts'
import type { Scheduler } from './background/scheduler.ts'
import type { Quota, QuotaUse } from './job/quota.ts'
import { Company } from './service/company.ts'
import type { CompanyOptions } from './service/company.ts'
import { heldTasks } from './workers/recovery.ts'
import { TurnQueue } from './job/turn-queue.ts'
import type { TurnGuard } from './turns/turn-guard.ts'
import { TurnTaker } from './turns/turn-taker.ts'
import type { TurnTracing } from './turns/turn-taker.ts'
import { Watcher } from './background/watcher.ts'

export interface EngineOptions {
  readonly storage: Storage
  readonly blueprints: BlueprintSource
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly settings?: Partial<EngineSettings>
  /** Ways to choose a worker beside those that are built in. */
  readonly strategies?: readonly Strategy[]
  readonly history?: HistorySink
  /** Who may start more jobs; everybody without it. */
  readonly admission?: Admission
  /** Watches over handlers; without it, what escapes from them is up to the process. */
  readonly guard?: TurnGuard | undefined
  /** Further processes of which one runs in the whole cluster. */
  readonly led?: readonly LedService[] | undefined
  /** Where handlers find the files of their jobs; without it they have none. */
  readonly files?: FilesOfJobs | undefined
  /** Where handlers write about their jobs; without it their lines go nowhere. */
  readonly logs?: LogsOfJobs | undefined
  /** Sees the runs of handlers; without it nothing does. */
  readonly tracing?: (TurnTracing & NewTraces) | undefined
  /** Who this instance is, for the others. */
  readonly identity?: CompanyOptions['identity']
  /** The fields that lead from a line of the log to the trace of its job. */
  readonly traceNames?: JobLogOptions['traceNames']
}

/** Gets every notable moment of jobs and workers after its commit. Must never block its caller. */
export interface HistorySink {
  /** `job`: as the moment left it, if it is there at all. */
  append(jobId: string, job: Job | undefined, entries: readonly TrailEntry[]): void
  appendWorker(moment: WorkerMoment): void
}

export interface EngineSettings extends BackgroundSettings {
  readonly executorConcurrencyMax: number
  /** What the jobs of running handlers may take of the memory. */
  readonly executorBytesMax: number
  readonly handlerMs: number
  readonly workerLeaseMs: number
  readonly workerTtlMs: number
  /** What the records of all workers may take of the memory. */
  readonly workerBytesMax: number
  readonly pickupMs: number
  /** Other instances work on the same storage. */
  readonly isShared: boolean
  /** Workers below it get only what no better worker has room for. */
  readonly reputationMin: number
  readonly retention: Retention
  /**
   * How often a waiting client's job is read again. Changes of other instances are signalled; this finds what a lost signal
   * would have told.
   */
  readonly relookMs: number
  /** How many jobs may be open; without it, any number. */
  readonly backlog?: BacklogBounds | undefined
  /** A client whose new jobs wait longer for their first turn starts no more until they do not. */
  readonly turnWaitMsMax: number
}

const DEFAULTS: EngineSettings = {
  executorConcurrencyMax: 1_000,
  executorBytesMax: 67_108_864,
  handlerMs: LIMITS.handlerMs,
  workerLeaseMs: 30_000,
  workerTtlMs: 120_000,
  workerBytesMax: 268_435_456,
  pickupMs: 5_000,
  isShared: false,
  reputationMin: 0,
  retention: {},
  relookMs: 1_000,
  turnWaitMsMax: 30_000,
  ...BACKGROUND_DEFAULTS,
}

export interface WaitOptions {
  /** Resolve once the version is beyond this one; without it, once the job has ended or stands aside in quarantine. */
  readonly afterVersion?: number | undefined
  readonly waitMs: number
  readonly signal: AbortSignal
}

/** Why a job's tasks are where they are. */
export interface TaskExplanation extends TaskWhereabouts {
  readonly taskId: string
  readonly type: string
  /** Which try it is. */
  readonly attempt: number
  /** When the result must be there, whatever the number of tries. */
  readonly deadlineAt: number | undefined
  /** Why the try before failed. */
  readonly lastError: TaskError | undefined
  /** Not of those that have ended, and only of the first twenty different ones. */
  readonly explanation: Explanation | undefined
}

/** Each is a look at all workers. */
const EXPLANATIONS_MAX = 20

/**
 * The orchestrator without HTTP: everything that a server, a test or an embedding program can
 * ask of it. Whatever tells the outside about a change has made that change durable first.
 */
export class Engine implements Service {
  readonly name = 'engine'
  readonly company: Company
  readonly desk: Desk
  readonly dispatcher: Dispatcher
  readonly executor: Executor
  readonly #background: Background
  readonly #storage: Storage
  readonly #options: EngineOptions
  readonly #director: Director
  readonly #creation: JobCreation
  readonly #news: JobNews
  readonly #changeFeed: ChangeFeed
  readonly #events: EventPost
  readonly #handover: Handover
  readonly #relookMs: number
  readonly #services: readonly Service[]
  #changes: Promise<void> = Promise.resolve()

  constructor(options: EngineOptions) {
    const settings = { ...DEFAULTS, ...options.settings }
    const { storage, clock, random, log } = options
    this.#options = options
    this.#storage = storage
    const registry = new ScriptRegistry(options.blueprints)
    const { pickupMs, workerTtlMs, isShared, retention, backlog } = settings
    this.#relookMs = settings.relookMs
    this.company = new Company(options, isShared, () => this.leadership.led)
    const { signals, flow } = this.company
    this.#news = new JobNews(clock, signals)
    this.#changeFeed = new ChangeFeed({ storage, clock, log, signals })
    const strategies = strategiesWith(options.strategies ?? [], settings.reputationMin)
    const parking = new Parking(clock)
    const holdings = new Holdings()
    const leaseMs = settings.workerLeaseMs
    const handover = new Handover({ storage, clock, random, log, signals, holdings, parking, leaseMs })
    this.#handover = handover
    const places = { signals, pickupMs, workerTtlMs, isShared, strategies, parking, handover }
    const dispatcher = new Dispatcher({ storage, clock, log, ...places })
    this.dispatcher = dispatcher
    const { guard, files, logs, tracing, traceNames } = options
    const jobLog = new JobLog({ clock, log, traceNames })
    const turns = new TurnTaker({ registry, clock, random, guard, files, logs, tracing })
    const turnQueue = new TurnQueue({ storage, clock, waitMsMax: settings.turnWaitMsMax })
    const director = new Director({
      storage,
      registry,
      clock,
      log,
      place: (task, job) => dispatcher.place(task, job),
      onRefused: (decision, isUnknown) => {
        dispatcher.onRefused(decision)
        handover.onRefused(decision, isUnknown)
      },
      onEntries: (jobId, entries, job) => {
        jobLog.record(jobId, entries, job)
        flow.onEntries(entries)
        options.history?.append(jobId, job, entries)
      },
      retention,
      takeTurn: (job) => turns.promptly(job),
    })
    this.#director = director
    const base = { storage, director, clock, random, log }
    const gates = { backlog, isShared, turnQueue, admission: options.admission }
    const keys = new KeyBook({ storage, clock, keyMs: retention.keyMs })
    const creation = new JobCreation({ ...base, registry, keys, ...gates, traces: tracing })
    this.#creation = creation
    const onMoment = momentsOf(options, this.#changeFeed)
    const { led } = options
    const background = createBackground({ ...base, creation, dispatcher, keys, settings, onMoment, led })
    this.#background = background
    const onAbandoned = (id: string): void => background.reputation.count(id, 'timedOut')
    const silentMs = Math.min(workerTtlMs, settings.workerForgetMs)
    const bounds = { leaseMs, workerBytesMax: settings.workerBytesMax, silentMs }
    const hands = { signals, parking, holdings, handover }
    this.desk = new Desk({ ...base, dispatcher, ...hands, ...bounds, onAbandoned, onMoment, onTaken: flow.onTaken })
    const { handlerMs, executorConcurrencyMax: concurrencyMax, executorBytesMax: bytesMax } = settings
    this.executor = new Executor({ ...base, registry, turns, handlerMs, concurrencyMax, bytesMax })
    this.#events = new EventPost({ ...base, registry })
    const postman = new Postman({ ...base, creation, registry, events: this.#events })
    const watcher = new Watcher({ ...base, workerOf: (id) => dispatcher.workerOf(id) })
    const own = [signals, dispatcher, this.executor, postman, watcher, jobLog, this.#changeFeed]
    this.#services = [...own, ...background.services]
    director.onDecided((decision, _before, _version, event) => turnQueue.onDecided(decision, event))
    this.#follow(director)
  }

  /** Tells every part what a commit has changed. */
  #follow(director: Director): void {
    director.onDecided((decision, before, version, event) => {
      this.#background.reputation.onEvent(event)
      // First whom to tell, then whose place is free: the second forgets who it was.
      this.desk.onDecided(decision, event)
      this.dispatcher.onDecided(decision, before, event)
      this.#handover.onDecided(decision)
      this.#news.publish(decision.job, version)
      this.#changeFeed.jobChanged(decision.job, version)
      if (isEnded(decision.job) && decision.job.status !== 'finished') this.executor.interrupt(decision.job.id)
    })
  }

  /** Jobs by the calendar. */
  get scheduler(): Scheduler {
    return this.#background.scheduler
  }

  /** Which background processes are led from here. */
  get leadership(): Leadership {
    return this.#background.leadership
  }

  /** Whether other instances work on the same storage now, as far as they are heard. */
  get hasPeers(): boolean {
    return this.company.signals.hasPeers
  }

  start(): Promise<void> {
    return this.#afterwards(async () => {
      for (const service of this.#services) await service.start()
      for await (const held of heldTasks(this.#storage)) this.desk.resume(held)
      this.desk.openPolls()
    })
  }

  /** Ends parked polls, claims nothing more, waits for running handlers, makes everything durable. */
  stop(): Promise<void> {
    return this.#afterwards(async () => {
      this.desk.closePolls()
      await Promise.all(this.#services.map((service) => service.stop()))
      await this.#handover.settled()
      await this.#storage.sync()
    })
  }

  /** Starts and stops follow one another as they were called; one that fails does not keep the next from its turn. */
  #afterwards(change: () => Promise<void>): Promise<void> {
    const changed = this.#changes.then(change)
    this.#changes = changed.catch(() => undefined)
    return changed
  }

  async tick(): Promise<{ readonly worked: number }> {
    let worked = 0
    for (const service of this.#services) {
      const round = await service.tick()
      worked += round.worked
    }
    return { worked }
  }

  /** Creates a job. With a key that this client has used before, gives back the job of that time. */
  createJob(wanted: NewJob): Promise<Created> {
    return this.#creation.start(wanted)
  }

  /** Creates a job in one commit with what belongs to it, for parts of the orchestrator. Not durable before `sync`. */
  createJobWith(jobId: string, request: JobRequest, beside: Beside): Promise<'created' | 'exists' | 'lost'> {
    return this.#creation.startWith(jobId, request, beside)
  }

  /** Calls `listener` with each job that ends by a decision of this instance, after the commit. */
  onEnded(listener: (job: Job) => void): void {
    this.#director.onDecided(({ job }) => {
      if (isEnded(job)) listener(job)
    })
  }

  /** Creates many at the cost of one durable write. Each succeeds or fails for itself. */
  createJobs(wanted: readonly NewJob[]): Promise<readonly (Created | { readonly error: unknown })[]> {
    return this.#creation.startAll(wanted)
  }

  /** How many jobs the client has started in the quota's period. */
  async quotaUse(clientId: string, quota: Quota): Promise<QuotaUse> {
    const use = await this.#creation.quotaUse(clientId, quota)
    await this.#storage.sync()
    return use
  }

  readJob(jobId: string): Promise<Stored<Job> | undefined> {
    return this.#storage.read('job', jobId)
  }

  listJobs(query: ListQuery): Promise<Listing<'job'>> {
    return this.#storage.list('job', query)
  }

  /** How many records there are of each status that any has. */
  readonly counts: Storage['counts'] = (kind, facets) => this.#storage.counts(kind, facets)

  /** The job once it has changed as asked, or as it is when the time is up. */
  async waitForJob(jobId: string, options: WaitOptions): Promise<Stored<Job> | undefined> {
    const { clock } = this.#options
    const until = clock.now() + options.waitMs
    for (;;) {
      const ear = this.#news.listen(jobId, options)
      try {
        const stored = await this.#storage.read('job', jobId)
        const leftMs = until - clock.now()
        const isThere = stored === undefined || isAwaited(stored.value, stored.version, options)
        if (isThere || leftMs <= 0 || options.signal.aborted) {
          await this.#storage.sync()
          return stored
        }
        await ear.wait({ waitMs: Math.min(leftMs, this.#relookMs), signal: options.signal })
      } finally {
        ear.close()
      }
    }
  }

  /** `extra` is written in the same commit, or not at all. With it, `lost` means that another writer was first. */
  cancelJob(jobId: string, by: string, reason?: string, extra?: readonly Put[]): Promise<Commanded> {
    return this.#command(jobId, { type: 'cancelled', at: this.#options.clock.now(), by, reason }, extra)
  }

  decideApproval(jobId: string, decision: string, by: string, more: DecisionDetails = {}): Promise<Commanded> {
    return this.#command(jobId, { type: 'decisionMade', at: this.#options.clock.now(), decision, by, ...more })
  }

  /** Sends a job an event, to take now or when it waits for it. */
  sendEvent(jobId: string, event: EventRequest): Promise<SentToJob> {
    return this.#events.send(jobId, event)
  }

  /** Sends an event to all jobs of the client that wait for its topic and this key, now or within a day. */
  publishEvent(
    clientId: string,
    key: string,
    event: EventRequest,
    beside?: Pick<Batch, 'put' | 'enqueue'>,
  ): Promise<Published> {
    return this.#events.publish(clientId, key, event, beside)
  }

  retryJob(
    jobId: string,
    by: string,
    data: { initialData?: JsonObject; stateHistory?: JsonObject } = {},
  ): Promise<Commanded> {
    return this.#command(jobId, { type: 'retried', at: this.#options.clock.now(), by, ...data })
  }

  discardJob(jobId: string, by: string): Promise<Commanded> {
    return this.#command(jobId, { type: 'discarded', at: this.#options.clock.now(), by })
  }

  async #command(jobId: string, event: CommandEvent, extra?: readonly Put[]): Promise<Commanded> {
    const applied = await this.#director.apply(jobId, event, extra === undefined ? {} : { extra })
    await this.#storage.sync()
    if (applied.type !== 'ignored' || applied.job === undefined || applied.reason === 'state_missing') return applied
    if (!isRepeated(applied.job, event)) return applied
    return { type: 'repeated', job: applied.job }
  }

  /**
   * Calls `listener` with what workers say of tasks that they hold, once it is durable. Only what reached this instance;
   * after a crash between the two it is not repeated: for complete information use a webhook or the history.
   */
  onWorkerEvent(listener: (news: WorkerEventNews) => void): () => void {
    return this.desk.onEvent(listener)
  }

  /** Calls `listener` with hints of what changes, at any instance, until the function that it gives is called. */
  onChanges(listener: (changes: Changes) => void): () => void {
    return this.#changeFeed.subscribe(listener)
  }

  /** For each call of the job's present state: where it is, and how the workers compare for it. */
  async explainJob(job: Job): Promise<readonly TaskExplanation[]> {
    const names = Object.keys(job.branches)
    const ids = names.map((name) => taskId(job.id, job.visit, name))
    const views = await this.#storage.peek('tasks', ids)
    const found: TaskExplanation[] = []
    const explained = new Map<string, Explanation>()
    const isLive = (id: string): boolean => this.dispatcher.worker(id) !== undefined
    for (const [index, name] of names.entries()) {
      const branch = job.branches[name]
      if (branch?.call.kind !== 'task') continue
      const { call, failedWorkers, attempt, deadlineAt, lastError } = branch
      const where = whereaboutsOf(branch.outcome === undefined ? views[index] : undefined, isLive)
      const explanation =
        where.where === 'ended' ? undefined : await this.#explain(call, failedWorkers ?? [], explained)
      const id = ids[index] ?? name
      found.push({ taskId: id, type: call.type, ...where, attempt, deadlineAt, lastError, explanation })
    }
    return found
  }

  /** Where the tasks and children of these jobs are, with one look at the queue; `undefined` for jobs that have none. */
  workOf(jobs: readonly Job[]): Promise<readonly (JobWork | undefined)[]> {
    return workOf(this.#storage, jobs, (id) => this.dispatcher.worker(id) !== undefined)
  }

  /** Tasks that ask for the same have the same explanation: a fan-out of 1,000 looks at all workers once. */
  async #explain(
    call: TaskCall,
    failedWorkers: readonly string[],
    explained: Map<string, Explanation>,
  ): Promise<Explanation | undefined> {
    const key = JSON.stringify([call.type, call.strategy, call.requirements, call.maxCost, failedWorkers])
    const known = explained.get(key)
    if (known !== undefined || explained.size >= EXPLANATIONS_MAX) return known
    const explanation = await this.dispatcher.explain(call, failedWorkers)
    explained.set(key, explanation)
    return explanation
  }
}

/** What goes wrong with the history is no concern of a worker. */
function momentsOf(
  { history, log }: EngineOptions,
  changeFeed: ChangeFeed,
): ((moment: WorkerMoment) => void) | undefined {
  if (history === undefined) return undefined
  return (moment) => {
    changeFeed.workerChanged()
    try {
      history.appendWorker(moment)
    } catch (error) {
      log.error('the history could not be written', { worker_id: moment.worker.id, error: String(error) })
    }
  }
}
