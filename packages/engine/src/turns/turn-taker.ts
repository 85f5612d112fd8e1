import { WOKEN } from '@impresario/core'
import type {
  Clock,
  EventOf,
  FilesOfJobs,
  Job,
  Log,
  LogsOfJobs,
  Random,
  RunnableBlueprint,
  TurnInput,
} from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import type { Soon, TaskFiles } from '@impresario/protocol'
import type { ScriptRegistry } from '../job/script-registry.ts'
import { excerpt } from '../job/excerpt.ts'
import type { TurnGuard } from './turn-guard.ts'

/** Sees every run of a handler. Must add no step before the handler's first and after its last. */
export interface TurnTracing {
  run<T>(job: Job, code: () => Soon<T>): Soon<T>
}

export interface TurnTakerOptions {
  readonly registry: ScriptRegistry
  readonly clock: Clock
  readonly random: Random
  readonly guard?: TurnGuard | undefined
  readonly files?: FilesOfJobs | undefined
  readonly logs?: LogsOfJobs | undefined
  readonly tracing?: TurnTracing | undefined
}

/** What a handler chose, or what it threw. */
export type Choice = Awaited<ReturnType<RunnableBlueprint['perform']>> | { readonly error: unknown }

type TurnEvent = EventOf<'turnTaken'> | EventOf<'turnFailed'>

/** A handler at work. */
export interface Performance {
  readonly visit: number
  readonly lateSignal: LateSignal
  /** Never rejects. */
  readonly choice: Promise<Choice>
}

/** A state whose handler has answered at once so many times in a row is believed to do so always. */
const PROMPT_MIN = 3
/** A state whose handler has waited for something is not tried again. */
const WAITS = Number.NEGATIVE_INFINITY
/** Of many blueprints with the same code a single one may have waited. After so many that did not, they are tried again. */
const KIN_WAITS = -100
/** Steps of promises that wait for nothing. A handler that awaits what is there already has about ten of them. */
const STEPS_MAX = 40
/** Runs that were begun here and whose turn was not claimed here: another instance has it. */
const BEGUN_MAX = 1_000
/** After a turn was found that may have ended a process, every turn passes through its queue for so long, and is counted. */
const CAUTION_MS = 60_000

/**
 * Runs handlers, and learns which of them answer at once: those that only choose, and wait for nothing outside. Their turns
 * can be taken in the very commit that asks for them, which saves that job a way through the queue and a commit.
 *
 * A handler that turns out to wait after all goes on, and the claim of its turn on this instance gets its action. It is taken for
 * a waiting one from then on.
 */
export class TurnTaker {
  readonly #options: TurnTakerOptions
  readonly #paces = new WeakMap<object, Map<string, number>>()
  readonly #begun = new Map<string, Performance>()
  #cautiousUntil = Number.NEGATIVE_INFINITY

  constructor(options: TurnTakerOptions) {
    this.#options = options
  }

  /** Runs the handler of the job's state, or gives back the run that has begun already. */
  perform(blueprint: RunnableBlueprint, job: Job, isSuspect = false): Performance {
    const begun = this.#begun.get(job.id)
    if (begun !== undefined) {
      this.#begun.delete(job.id)
      if (begun.visit === job.visit) return begun
    }
    const performance = this.#begin(blueprint, job, isSuspect)
    const pace = this.#paceOf(blueprint, job.state)
    if (pace > WAITS && pace < PROMPT_MIN) void this.#time(blueprint, job.state, performance)
    return performance
  }

  /** A process may have ended because of a handler: one that runs before its turn is written would leave no trace. */
  beCautious(): void {
    this.#cautiousUntil = this.#options.clock.now() + CAUTION_MS
  }

  /** Takes the job's turn now, if its handler is known to answer at once. One that does not even return a promise has answered here. */
  promptly(job: Job): Soon<TurnEvent | undefined> {
    const blueprint = this.#options.registry.of(job)
    if (blueprint === undefined || this.#paceOf(blueprint, job.state) < PROMPT_MIN) return undefined
    if (this.#options.clock.now() < this.#cautiousUntil) return undefined
    const run = this.#begin(blueprint, job, false)
    return run.answered === undefined ? this.#awaited(blueprint, job, run) : this.eventOf(job.visit, run.answered)
  }

  async #awaited(blueprint: RunnableBlueprint, job: Job, performance: Performance): Promise<TurnEvent | undefined> {
    const choice = await promptChoice(performance.choice)
    if (choice !== undefined) return this.eventOf(job.visit, choice)
    this.#setPace(blueprint, job.state, waitsOf(blueprint))
    this.#keep(job.id, performance)
    return undefined
  }

  eventOf(visit: number, choice: Choice): TurnEvent {
    return 'error' in choice
      ? this.failure(visit, choice.error)
      : { type: 'turnTaken', at: this.#options.clock.now(), visit, ...choice }
  }

  failure(visit: number, error: unknown): EventOf<'turnFailed'> {
    const { clock, random } = this.#options
    const [message, stack] = [messageOf(error), stackOf(error)]
    return { type: 'turnFailed', at: clock.now(), visit, message, stack, chance: random.next() }
  }

  /** User code may throw anything, answer late or never answer. What escapes from it counts as its answer, unless it has answered before. */
  #begin(blueprint: RunnableBlueprint, job: Job, isSuspect: boolean): HandlerRunning {
    const run = new HandlerRunning(blueprint, job, isSuspect, this.#options)
    run.begin()
    return run
  }

  async #time(blueprint: RunnableBlueprint, state: string, { choice }: Performance): Promise<void> {
    const isPrompt = (await promptChoice(choice)) !== undefined
    this.#setPace(blueprint, state, isPrompt ? this.#paceOf(blueprint, state) + 1 : waitsOf(blueprint))
  }

  #keep(jobId: string, performance: Performance): void {
    this.#begun.set(jobId, performance)
    const [oldest] = this.#begun.keys()
    if (oldest !== undefined && this.#begun.size > BEGUN_MAX) this.#begun.delete(oldest)
  }

  #paceOf(blueprint: RunnableBlueprint, state: string): number {
    return this.#paces.get(blueprint.kin ?? blueprint)?.get(state) ?? 0
  }

  #setPace(blueprint: RunnableBlueprint, state: string, pace: number): void {
    const code = blueprint.kin ?? blueprint
    const paces = this.#paces.get(code) ?? new Map<string, number>()
    paces.set(state, pace)
    this.#paces.set(code, paces)
  }
}

function waitsOf({ kin }: RunnableBlueprint): number {
  return kin === undefined ? WAITS : KIN_WAITS
}

/**
 * A handler at work, and what it gets. All of it is opened only when it is used: most handlers have no files, look at no signal, and
 * have answered before anybody could wait for them.
 */
class HandlerRunning implements TurnInput, Performance {
  readonly job: Job
  readonly #blueprint: RunnableBlueprint
  readonly #isSuspect: boolean
  readonly #options: TurnTakerOptions
  #answered: Choice | undefined
  #choice: Promise<Choice> | undefined
  #resolve: ((choice: Choice) => void) | undefined
  #signal: LateSignal | undefined
  #files: TaskFiles | undefined

  constructor(blueprint: RunnableBlueprint, job: Job, isSuspect: boolean, options: TurnTakerOptions) {
    this.job = job
    this.#blueprint = blueprint
    this.#isSuspect = isSuspect
    this.#options = options
  }

  get visit(): number {
    return this.job.visit
  }

  get offloads(): TurnInput['offloads'] {
    return this.#blueprint.policy.offloads
  }

  /** What it chose, if it has. */
  get answered(): Choice | undefined {
    return this.#answered
  }

  get choice(): Promise<Choice> {
    this.#choice ??=
      this.#answered === undefined
        ? new Promise<Choice>((resolve) => {
            this.#resolve = resolve
          })
        : Promise.resolve(this.#answered)
    return this.#choice
  }

  /** For who runs it. */
  get lateSignal(): LateSignal {
    this.#signal ??= new LateSignal((code) => this.#watched(code))
    return this.#signal
  }

  get signal(): AbortSignal {
    return this.lateSignal.get()
  }

  get files(): TaskFiles | undefined {
    this.#files ??= this.#openFiles()
    return this.#files
  }

  get log(): Log | undefined {
    return this.#options.logs?.open(this.job)
  }

  begin(): void {
    const { tracing } = this.#options
    const perform = (): ReturnType<RunnableBlueprint['perform']> => this.#blueprint.perform(this)
    try {
      const output = this.#watched(tracing === undefined ? perform : () => tracing.run(this.job, perform))
      if (output instanceof Promise) output.then(this.#answer, this.#onError)
      else this.#answer(output)
    } catch (error) {
      // What the handler threw at once, or what a guard threw into one that does not yield.
      this.#onError(error)
    }
  }

  readonly #answer = (choice: Choice): void => {
    if (this.#answered !== undefined) return
    this.#answered = choice
    this.#resolve?.(choice)
  }

  readonly #onError = (error: unknown): void => this.#answer({ error })

  #watched<T>(code: () => T): T {
    const { guard } = this.#options
    if (guard === undefined) return code()
    const { id: jobId, visit, blueprint, state } = this.job
    return guard.run({ jobId, visit, blueprint, state, isSuspect: this.#isSuspect }, code, this.#onError)
  }

  #openFiles(): TaskFiles | undefined {
    const { job } = this
    const opened = this.#options.files?.open({ id: job.id, clientId: job.client.id })
    if (opened !== undefined) void this.choice.then(() => opened.release())
    return opened?.files
  }
}

/** The answer, if it comes without anything from outside: no timer, no disk, no network. */
async function promptChoice(choice: Promise<Choice>): Promise<Choice | undefined> {
  const found: Choice[] = []
  void choice.then((value) => found.push(value))
  for (let steps = 0; steps < STEPS_MAX && found.length === 0; steps += 1) await Promise.resolve()
  return found[0]
}

/** An AbortSignal that is created on first access. Most handlers do not use it, and thousands run in a second. */
export class LateSignal {
  readonly #watched: <T>(code: () => T) => T
  #controller: AbortController | undefined = undefined
  #isAborted = false

  /** `watched` runs what belongs to the handler: those who listen to the signal are its code. */
  constructor(watched: <T>(code: () => T) => T) {
    this.#watched = watched
  }

  get(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#isAborted) this.#controller.abort(WOKEN)
    return this.#controller.signal
  }

  abort(): void {
    this.#isAborted = true
    const controller = this.#controller
    if (controller !== undefined) this.#watched(() => controller.abort(WOKEN))
  }
}

/** User code may throw anything, also what cannot even be turned into text. */
export function messageOf(error: unknown): string {
  const message: unknown = error instanceof Error ? error.message : error
  try {
    const text =
      error instanceof Error ? String(message) : `Something that is not an Error was thrown: ${String(message)}`
    return excerpt(text, LIMITS.handlerErrorCharsMax)
  } catch {
    return 'Something that is not an Error was thrown, and it cannot be shown as text.'
  }
}

function stackOf(error: unknown): string | undefined {
  const stack: unknown = error instanceof Error ? error.stack : undefined
  return typeof stack === 'string' ? excerpt(stack, LIMITS.handlerStackCharsMax) : undefined
}
