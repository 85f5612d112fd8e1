import { WOKEN } from '@impresario/core'
import type {
  Clock,
  EventOf,
  FilesOfJobs,
  Job,
  LogsOfJobs,
  Random,
  RunnableBlueprint,
  TurnFiles,
} from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
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
  readonly #paces = new WeakMap<RunnableBlueprint, Map<string, number>>()
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
    if (pace >= 0 && pace < PROMPT_MIN) void this.#time(blueprint, job.state, performance)
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
    this.#setPace(blueprint, job.state, WAITS)
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

  /** User code may throw anything, answer late or never answer. */
  #begin(blueprint: RunnableBlueprint, job: Job, isSuspect: boolean): Performance {
    const { guard, files: store, logs, tracing } = this.#options
    const strays = guard === undefined ? undefined : new Strays()
    const watched = <T>(code: () => T): T => {
      if (guard === undefined || strays === undefined) return code()
      const run = { jobId: job.id, visit: job.visit, blueprint: job.blueprint, state: job.state, isSuspect }
      return guard.run(run, code, strays.catch)
    }
    const signal = new LateSignal(watched)
    // Asked for only when it is used, as the signal: most handlers have no files.
    let opened: TurnFiles | undefined
    const input = {
      job,
      offloads: blueprint.policy.offloads,
      get signal() {
        return signal.get()
      },
      get files() {
        opened ??= store?.open({ id: job.id, clientId: job.client.id })
        return opened?.files
      },
      get log() {
        return logs?.open(job)
      },
    }
    const perform = (): ReturnType<RunnableBlueprint['perform']> => blueprint.perform(input)
    const traced = tracing === undefined ? perform : () => tracing.run(job, perform)
    const chosen = performed(() => watched(traced))
    const choice = strays === undefined ? chosen : Promise.race([chosen, strays.first])
    void choice.then(() => opened?.release())
    return { visit: job.visit, signal, choice }
  }

  async #time(blueprint: RunnableBlueprint, state: string, { choice }: Performance): Promise<void> {
    const isPrompt = (await promptChoice(choice)) !== undefined
    this.#setPace(blueprint, state, isPrompt ? this.#paceOf(blueprint, state) + 1 : WAITS)
  }

  #keep(jobId: string, performance: Performance): void {
    this.#begun.set(jobId, performance)
    const [oldest] = this.#begun.keys()
    if (oldest !== undefined && this.#begun.size > BEGUN_MAX) this.#begun.delete(oldest)
  }

  #paceOf(blueprint: RunnableBlueprint, state: string): number {
    return this.#paces.get(blueprint)?.get(state) ?? 0
  }

  #setPace(blueprint: RunnableBlueprint, state: string, pace: number): void {
    const paces = this.#paces.get(blueprint) ?? new Map<string, number>()
    paces.set(state, pace)
    this.#paces.set(blueprint, paces)
  }
}

/** A guard may stop a handler that does not yield, by throwing into it. */
async function performed(run: () => ReturnType<RunnableBlueprint['perform']>): Promise<Choice> {
  try {
    return await run()
  } catch (error) {
    return { error }
  }
}

/** What escapes from a handler: the first of it is what the handler came to, unless that has answered before. */
class Strays {
  readonly first: Promise<Choice>
  #tell: (choice: Choice) => void = () => {}

  constructor() {
    this.first = new Promise((resolve) => {
      this.#tell = resolve
    })
  }

  readonly catch = (error: unknown): void => this.#tell({ error })
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
