import { AsyncLocalStorage } from 'node:async_hooks'
import { Script } from 'node:vm'
import type { Log } from '@impresario/core'
import type { HandlerRun, TurnGuard } from '@impresario/engine'
import { errorFields } from '../runtime/log.ts'

/** A run of a handler, to which everything belongs that it sets going. */
interface Run extends HandlerRun {
  readonly onStray: (error: unknown) => void
}

/** A handler that held up a process before may hold it up for so long, and is then stopped. */
const STALL_MS = 5_000

type ExitCode = number | string | null | undefined
type Exit = (code?: ExitCode) => never

/** Marks the listeners of guards, so that several in one process know of each other. */
const OWNS = Symbol.for('impresario.handler-guard.owns')
/** Where the code lies that a script is to run. */
const CODE = Symbol.for('impresario.handler-guard.code')

interface Listener {
  (error: unknown): void
  [OWNS]?: () => boolean
}

/**
 * Keeps what escapes from handlers away from the process.
 *
 * Everything that a handler starts carries the run that it belongs to. An unhandled rejection, an error that is
 * thrown in a timer or an emitter, and a call of `process.exit` fail that run, with its blueprint and state in the log.
 * What belongs to no handler is left to other listeners; where there are none, the process ends with exit code 1, as Node
 * does by itself.
 *
 * `new` → `install` → watching → `uninstall`. It changes how the whole process behaves, so that only those install it who
 * own the process. Without that it only stops handlers that hold up the process once more.
 */
export class HandlerGuard implements TurnGuard {
  readonly #runs = new AsyncLocalStorage<Run>()
  readonly #log: Log
  #exit: Exit | undefined
  #ownExit: Exit | undefined

  constructor(log: Log) {
    this.#log = log
  }

  run<T>(run: HandlerRun, code: () => T, onStray: (error: unknown) => void): T {
    const watched = run.isSuspect ? () => withoutStall(run, code) : code
    // Carrying the run along costs something with every promise of the process, and is not used without the guard.
    if (this.#exit === undefined) return watched()
    return this.#runs.run({ ...run, onStray }, watched)
  }

  /** What runs here belongs to no handler, wherever it was called from. */
  outside<T>(code: () => T): T {
    return this.#runs.exit(code)
  }

  install(): void {
    if (this.#exit !== undefined) return
    process.on('unhandledRejection', this.#onRejection)
    process.on('uncaughtException', this.#onException)
    const exit = process.exit.bind(process)
    this.#exit = exit
    this.#ownExit = (code) => {
      const run = this.#runs.getStore()
      if (run === undefined) return exit(code)
      throw new Error(`The handler of "${run.state}" called process.exit(${code ?? ''}).`)
    }
    process.exit = this.#ownExit
  }

  uninstall(): void {
    if (this.#exit === undefined) return
    process.off('unhandledRejection', this.#onRejection)
    process.off('uncaughtException', this.#onException)
    // Another guard may have put its own before ours, which then stays behind it and lets everything through.
    if (process.exit === this.#ownExit) process.exit = this.#exit
    this.#exit = undefined
  }

  readonly #onRejection: Listener = Object.assign(
    (error: unknown): void => {
      if (this.#isOurs('A promise that the handler did not await was rejected', error)) return
      if (this.#isLeftToUs('unhandledRejection', this.#onRejection)) this.#end(error)
    },
    { [OWNS]: () => this.#runs.getStore() !== undefined },
  )

  readonly #onException: Listener = Object.assign(
    (error: unknown): void => {
      if (this.#isOurs('An error was thrown in what the handler left behind', error)) return
      if (this.#isLeftToUs('uncaughtException', this.#onException)) this.#end(error)
    },
    { [OWNS]: () => this.#runs.getStore() !== undefined },
  )

  #isOurs(how: string, error: unknown): boolean {
    const run = this.#runs.getStore()
    if (run === undefined) return false
    const { jobId, blueprint, state, onStray } = run
    this.#log.error('an error escaped from a handler', { job_id: jobId, blueprint, state, how, ...errorFields(error) })
    onStray(strayError(how, error))
    return true
  }

  /** Other guards have runs of their own, and of several only the first ends the process. Other listeners know what to do. */
  #isLeftToUs(event: 'unhandledRejection' | 'uncaughtException', own: Listener): boolean {
    // Boundary: guards mark their listeners, and all others have no such property.
    const listeners = process.rawListeners(event) as unknown as readonly Listener[]
    if (listeners.some((listener) => listener[OWNS] === undefined || listener[OWNS]())) return false
    return listeners[0] === own
  }

  #end(error: unknown): void {
    this.#log.error('an uncaught error ends this process', errorFields(error))
    this.#exit?.(1)
  }
}

function strayError(how: string, error: unknown): Error {
  const isError = error instanceof Error
  const stray = new Error(`${how}: ${isError ? error.message : shown(error)}`, { cause: error })
  if (isError && error.stack !== undefined) stray.stack = error.stack
  return stray
}

function shown(value: unknown): string {
  try {
    return String(value)
  } catch {
    return 'something that cannot be shown as text'
  }
}

const CALL = new Script(`globalThis[Symbol.for('${CODE.description}')]()`)

/**
 * Runs code that may never yield: an endless loop is stopped by an error that is thrown into it. Only the part up to the
 * first wait is watched. It costs a thread for each call, so that only runs under suspicion have it.
 */
function withoutStall<T>({ state }: HandlerRun, code: () => T): T {
  const place = globalThis as { [CODE]?: (() => T) | undefined }
  const before = place[CODE]
  place[CODE] = code
  try {
    // Boundary: the script calls the code above and gives back what it returned.
    return CALL.runInThisContext({ timeout: STALL_MS }) as T
  } catch (error) {
    if (!isTimeout(error)) throw error
    throw new Error(
      `The handler of "${state}" held up the whole process for ${STALL_MS / 1000} s and was stopped. Look for an endless loop.`,
      { cause: error },
    )
  } finally {
    place[CODE] = before
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}
