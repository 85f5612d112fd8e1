import { PassingMap } from '@impresario/protocol'
import type { JsonObject, WireTask } from '@impresario/protocol'
import { TaskFailure, type AbortCause } from './failure.ts'
import { endingWithAddresses, hasAddresses, paramsWithPaths } from './file-passing.ts'
import { makeSkill, type Ending, type Skill } from './handler.ts'
import type { Log } from '../runtime/log.ts'
import { perform, type Middleware } from './middleware.ts'
import { RunningTask, type TaskOrigin } from './running.ts'
import type { TaskTracing } from './task-tracing.ts'

interface RunnerOptions {
  readonly concurrency: number
  readonly taskLimits: Readonly<Record<string, number>>
  readonly capacityChecker: ((type: string) => boolean) | undefined
  readonly skillDependencies: Readonly<Record<string, readonly string[]>>
  readonly strictEvents: boolean
  readonly payloadDir: string
  readonly log: Log
  /** Something ended, began, or became hot. */
  readonly onChange: () => void
  readonly onHot: () => void
}

/** One look at all deadlines this often is enough, and cheaper than a timer for every task. */
const SWEEP_MS = 250

/**
 * Runs tasks within the worker's limits.
 *
 * A task that has been taken either runs or waits here, when its type is at its limit; both hold one of the worker's
 * slots. It leaves when its handler is done, or when the worker gives it up at shutdown; what a handler does
 * after that is ignored.
 */
export class TaskRunner {
  readonly #skills = new Map<string, Skill>()
  readonly #held = new PassingMap<string, RunningTask>()
  readonly #waiting = new Map<string, RunningTask[]>()
  readonly #counts = new Map<string, number>()
  readonly #hot = new Set<string>()
  readonly #middlewares: Middleware[] = []
  readonly #options: RunnerOptions
  #sweeper: NodeJS.Timeout | undefined
  #whenEmpty: (() => void) | undefined
  #tracing: TaskTracing | undefined

  constructor(options: RunnerOptions) {
    this.#options = options
  }

  get skills(): readonly Skill[] {
    return [...this.#skills.values()]
  }

  get size(): number {
    return this.#held.size
  }

  get free(): number {
    return Math.max(0, this.#options.concurrency - this.#held.size)
  }

  /** What could be started now; `undefined` when that is everything. */
  get available(): readonly string[] | undefined {
    const names = [...this.#skills.keys()]
    const able = names.filter((name) => this.#hasRoom(name) && this.#hasCapacity(name))
    return able.length === names.length ? undefined : able
  }

  taskIds(origin: TaskOrigin): readonly string[] {
    return [...this.#held.values()].filter((task) => task.origin === origin).map((task) => task.taskId)
  }

  /** Loaded things, by whether they are skills of this worker; the others are models. A skill is hot with its models. */
  hot(): { readonly skills: readonly string[]; readonly models: readonly string[] } {
    const names = [...this.#hot]
    const needs = Object.entries(this.#options.skillDependencies)
    const complete = needs.filter(([, models]) => models.length > 0 && models.every((model) => this.#hot.has(model)))
    const skills = [...names, ...complete.map(([skill]) => skill)].filter((name) => this.#skills.has(name))
    return { skills: [...new Set(skills)], models: names.filter((name) => !this.#skills.has(name)) }
  }

  setHot(name: string, hot: boolean): void {
    if (this.#hot.has(name) === hot) return
    if (hot) this.#hot.add(name)
    else this.#hot.delete(name)
    this.#options.onHot()
  }

  add(skill: Skill): void {
    if (this.#skills.has(skill.name)) throw new TypeError(`This worker has two handlers for "${skill.name}".`)
    this.#skills.set(skill.name, skill)
  }

  /** From now on a span is made of each run. */
  trace(tracing: TaskTracing): void {
    this.#tracing = tracing
  }

  use(middleware: Middleware): void {
    this.#middlewares.push(middleware)
  }

  accept(wire: WireTask, origin: TaskOrigin): void {
    if (this.#held.has(wire.task_id)) {
      // The orchestrator gave up on it and gave it to us again. One run is enough: its result counts for both.
      this.#options.log.debug('A task arrived that is already running here.', { task_id: wire.task_id })
      return
    }
    const skill = this.#skills.get(wire.type) ?? missing(wire.type)
    const setHot = (name: string, hot: boolean): void => this.setHot(name, hot)
    const { strictEvents, payloadDir, log } = this.#options
    const task = new RunningTask({ wire, skill, origin, setHot, strictEvents, payloadDir, log })
    this.#held.set(wire.task_id, task)
    if (task.deadline !== undefined || skill.timeoutMs !== undefined) this.#watchDeadlines()
    if (this.#hasRoom(wire.type)) this.#start(task)
    else this.#queue(task)
  }

  abort(taskId: string, cause: AbortCause): void {
    const task = this.#held.get(taskId)
    if (task === undefined) return
    task.abort(cause)
    const queue = this.#waiting.get(task.type)
    const place = queue?.indexOf(task) ?? -1
    if (queue === undefined || place < 0) return
    queue.splice(place, 1)
    task.fail(undefined)
    this.#release(task)
  }

  /** Gives up everything that is still here: the handlers are told, the orchestrator gets it back at once. */
  handBack(): void {
    for (const task of this.#held.values()) {
      task.abort('shutdown')
      task.fail(undefined)
    }
    this.#held.clear()
    this.#waiting.clear()
    this.#counts.clear()
    this.#stopSweeping()
    this.#whenEmpty?.()
  }

  whenEmpty(): Promise<void> {
    if (this.#held.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#whenEmpty = resolve
    })
  }

  #hasRoom(type: string): boolean {
    const limit = this.#options.taskLimits[type]
    return limit === undefined || (this.#counts.get(type) ?? 0) < limit
  }

  #hasCapacity(type: string): boolean {
    const { capacityChecker, log } = this.#options
    try {
      return capacityChecker?.(type) ?? true
    } catch (error) {
      log.error('The capacity checker failed; the type counts as full.', { type, error: String(error) })
      return false
    }
  }

  #queue(task: RunningTask): void {
    const queue = this.#waiting.get(task.type)
    if (queue === undefined) this.#waiting.set(task.type, [task])
    else queue.push(task)
  }

  #start(task: RunningTask): void {
    this.#counts.set(task.type, (this.#counts.get(task.type) ?? 0) + 1)
    this.#perform(task)
  }

  #perform(task: RunningTask): void {
    if (task.ended) return
    task.started()
    let ending: Ending | Promise<Ending>
    try {
      const run = (): Ending | Promise<Ending> => this.#run(task, task.wire.params ?? {})
      ending = this.#tracing === undefined ? run() : this.#tracing.run(task, run)
    } catch (error) {
      return this.#fail(task, error)
    }
    if (!(ending instanceof Promise)) return this.#succeed(task, ending)
    ending.then(
      (value) => this.#succeed(task, value),
      (error: unknown) => this.#fail(task, error),
    )
  }

  /** Tasks without files, nearly all, pay one look at their params for those with files. */
  #run(task: RunningTask, params: JsonObject): Ending | Promise<Ending> {
    if (hasAddresses(params)) return this.#runWithFiles(task, params)
    const ending = perform(task.skill, task, params, this.#middlewares)
    if (!(ending instanceof Promise)) return ending
    return ending.then(
      (value) => (task.hasFiles ? this.#keepFiles(task, value) : value),
      async (error: unknown) => {
        if (task.hasFiles) await task.releaseFiles()
        throw error
      },
    )
  }

  async #keepFiles(task: RunningTask, ending: Ending): Promise<Ending> {
    try {
      return await endingWithAddresses(ending, task.files)
    } finally {
      await task.releaseFiles()
    }
  }

  async #runWithFiles(task: RunningTask, params: JsonObject): Promise<Ending> {
    try {
      const withPaths = await paramsWithPaths(params, task.files)
      const ending = await perform(task.skill, task, withPaths, this.#middlewares)
      return await endingWithAddresses(ending, task.files)
    } finally {
      await task.releaseFiles()
    }
  }

  #succeed(task: RunningTask, ending: Ending): void {
    const given = task.ended
    task.succeed(ending)
    if (!given) this.#finish(task)
  }

  #fail(task: RunningTask, error: unknown): void {
    const given = task.ended
    task.fail(error)
    if (!given) this.#finish(task)
  }

  #finish(task: RunningTask): void {
    const next = this.#waiting.get(task.type)?.shift()
    // The next of its type takes over its place in the count; later, because a row of tasks that never wait would
    // otherwise nest as deep as it is long.
    if (next !== undefined) queueMicrotask(() => this.#perform(next))
    else this.#counts.set(task.type, (this.#counts.get(task.type) ?? 1) - 1)
    this.#release(task)
  }

  #release(task: RunningTask): void {
    this.#held.delete(task.taskId)
    this.#options.onChange()
    if (this.#held.size === 0) this.#whenEmpty?.()
  }

  #watchDeadlines(): void {
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS)
  }

  #sweep(): void {
    if (this.#held.size === 0) return this.#stopSweeping()
    const now = Date.now()
    for (const task of this.#held.values()) {
      if ((task.deadline ?? Number.POSITIVE_INFINITY) <= now) this.abort(task.taskId, 'deadline')
      else if (task.timeoutAt <= now) this.abort(task.taskId, 'timeout')
    }
  }

  #stopSweeping(): void {
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }
}

function missing(type: string): Skill {
  const handler = (): never => {
    throw new TaskFailure('PERMANENT_ERROR', `This worker has no handler for "${type}".`)
  }
  return makeSkill(type, {}, handler, false)
}
