import { chain } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import type { Ending, Skill, Task } from './handler.ts'

/** What a middleware sees of a task. `params` may be replaced before `next`: the handler gets what is there then. */
export interface MiddlewareContext {
  readonly task: Task
  params: JsonObject
  /** For middlewares to leave one another something. */
  readonly notes: Map<string, unknown>
}

/**
 * Runs around every handler. What `next` resolves with is what the handler returned; what the middleware returns counts
 * instead, unless it returns nothing. What it throws fails the task as if the handler had thrown it.
 */
export type Middleware = (context: MiddlewareContext, next: () => Promise<unknown>) => unknown

/** One run of a skill: middlewares, then the check of the input, the handler, and the check of what came out. */
export function perform(
  skill: Skill,
  task: Task,
  params: JsonObject,
  middlewares: readonly Middleware[],
): Ending | Promise<Ending> {
  const finish = (returned: unknown): Ending | Promise<Ending> => skill.finish(returned)
  if (middlewares.length === 0) return chain(callHandler(skill, task, params), finish)
  const context: MiddlewareContext = { task, params, notes: new Map() }
  return through(middlewares, 0, context, skill).then(finish)
}

function callHandler(skill: Skill, task: Task, params: JsonObject): unknown {
  return chain(skill.read(params), (input) => skill.call(input, task))
}

async function through(
  middlewares: readonly Middleware[],
  place: number,
  context: MiddlewareContext,
  skill: Skill,
): Promise<unknown> {
  const middleware = middlewares[place]
  if (middleware === undefined) return callHandler(skill, context.task, context.params)
  let inner: Promise<unknown> | undefined
  const next = (): Promise<unknown> => {
    if (inner !== undefined) throw new TypeError('A middleware called next() twice.')
    inner = through(middlewares, place + 1, context, skill)
    // A middleware that does not await it still gets the failure: it is awaited below.
    inner.catch(() => undefined)
    return inner
  }
  const returned = await middleware(context, next)
  return returned === undefined ? inner : returned
}
