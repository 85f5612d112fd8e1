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
import type { TaskFiles } from '@impresario/protocol'
import type { ScriptRegistry } from '../job/script-registry.ts'
import { excerpt } from '../job/excerpt.ts'
import type { TurnGuard } from './turn-guard.ts'

/** Sees every run of a handler. Must add no step before the handler's first and after its last. */
export interface TurnTracing {
  run<T>(job: Job, code: () => Promise<T>): Promise<T>
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
  readonly signal: LateSignal
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

  /** Takes the job's turn now, if its handler is known to answer at once. */
  async promptly(job: Job): Promise<TurnEvent | undefined> {
    const blueprint = this.#options.registry.of(job)
    if (blueprint === undefined || this.#paceOf(blueprint, job.state) < PROMPT_MIN) return undefined
    if (this.#options.clock.now() < this.#cautiousUntil) return undefined
    const performance = this.#begin(blueprint, job, false)
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
  #begin(blueprint: RunnableBlueprint, job: Job, isSuspect: boolean): Performance {
    const { guard, tracing } = this.#options
    let answer: (choice: Choice) => void = () => {}
    const choice = new Promise<Choice>((resolve) => {
      answer = resolve
    })
    const onError = (error: unknown): void => answer({ error })
    const watched = <T>(code: () => T): T => {
      if (guard === undefined) return code()
      const run = { jobId: job.id, visit: job.visit, blueprint: job.blueprint, state: job.state, isSuspect }
      return guard.run(run, code, onError)
    }
    const run = new HandlerInput(blueprint, job, { choice, watched }, this.#options)
    const perform = (): ReturnType<RunnableBlueprint['perform']> => blueprint.perform(run)
    const traced = tracing === undefined ? perform : () => tracing.run(job, perform)
    try {
      watched(traced).then(answer, onError)
    } catch (error) {
      // A guard may stop a handler that does not yield, by throwing into it.
      onError(error)
    }
    return { visit: job.visit, signal: run.lateSignal, choice }
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

interface Watched {
  readonly choice: Promise<Choice>
  readonly watched: <T>(code: () => T) => T
}

/** What a handler gets. All of it is opened only when it is used: most handlers have no files and look at no signal. */
class HandlerInput implements TurnInput {
  readonly job: Job
  readonly offloads: TurnInput['offloads']
  readonly lateSignal: LateSignal
  readonly #choice: Promise<Choice>
  readonly #options: TurnTakerOptions
  #files: TaskFiles | undefined

  constructor({ policy }: RunnableBlueprint, job: Job, { choice, watched }: Watched, options: TurnTakerOptions) {
    this.job = job
    this.offloads = policy.offloads
    this.lateSignal = new LateSignal(watched)
    this.#choice = choice
    this.#options = options
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

  #openFiles(): TaskFiles | undefined {
    const { job } = this
    const opened = this.#options.files?.open({ id: job.id, clientId: job.client.id })
    if (opened !== undefined) void this.#choice.then(() => opened.release())
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
