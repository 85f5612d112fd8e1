import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import { ApiError, pathTo } from './api.ts'
import { BOUNDS } from './bounds.ts'
import { isAtRest, isEnded, waitForJob } from './job-view.ts'
import { pendingOf, resultOf } from './job-result.ts'
import { putQuestions } from './line.ts'
import type { LineOf } from './line.ts'
import { answer, problemIn, questionsOf } from './question.ts'
import { capabilitiesOf, mustKnowTasks } from './session.ts'
import type { LowServer } from './session.ts'
import { detailedTask, faultOf, olderTask } from './task-view.ts'
import { objectOf, rowsOf } from './tool.ts'
import type { ToolContext } from './tool.ts'
import type { ContextOf } from './mcp-server.ts'

const taskParams = z.looseObject({ taskId: z.string().min(1).max(200) })
const listParams = z.looseObject({ cursor: z.string().max(1_000).optional() }).optional()

/** Jobs as tasks of the extension, for clients of 2026-07-28. */
export function serveTasks(server: LowServer, contextOf: ContextOf): void {
  server.setRequestHandler('tasks/get', { params: taskParams }, async ({ taskId }, ctx) => {
    mustKnowTasks(capabilitiesOf(ctx, server))
    const context = contextOf(ctx)
    const job = await readTask(context, taskId)
    return detailedTask(job, await questionsOf(context, job))
  })

  server.setRequestHandler('tasks/update', { params: taskParams }, async ({ taskId }, ctx) => {
    mustKnowTasks(capabilitiesOf(ctx, server))
    const context = contextOf(ctx)
    const job = await readTask(context, taskId)
    const responses = ctx.mcpReq.inputResponses ?? {}
    await asProtocol(async () => {
      const questions = await questionsOf(context, job)
      const problem = problemIn(questions, responses)
      if (problem !== undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, problem)
      await answer(context, questions, responses)
    })
    return {}
  })

  server.setRequestHandler('tasks/cancel', { params: taskParams }, async ({ taskId }, ctx) => {
    mustKnowTasks(capabilitiesOf(ctx, server))
    await cancelTask(contextOf(ctx), taskId)
    return {}
  })
}

/** The same jobs for clients of 2025-11-25, whose tasks are a part of the protocol itself. */
export function serveOlderTasks(server: LowServer, contextOf: ContextOf, lineOf: LineOf): void {
  server.setRequestHandler('tasks/get', { params: taskParams }, async ({ taskId }, ctx) => {
    const context = contextOf(ctx)
    const job = await readTask(context, taskId)
    return olderTask(job, await questionsOf(context, job))
  })

  server.setRequestHandler('tasks/result', { params: taskParams }, async ({ taskId }, ctx) => {
    const context = contextOf(ctx)
    await readTask(context, taskId)
    const waited = await waitForJob(context, taskId, BOUNDS.waitSecondsMax * 1_000)
    const line = lineOf(ctx)
    const job = line === undefined ? waited : await asProtocol(() => putQuestions(line, context, waited))
    const related = { _meta: { 'io.modelcontextprotocol/related-task': { taskId } } }
    if (isEnded(job)) return { ...resultOf(job), ...related }
    if (job['status'] === 'quarantined') throw new ProtocolError(ProtocolErrorCode.InternalError, faultOf(job).message)
    return { ...pendingOf(job, isAtRest(job) ? await questionsOf(context, job) : []), ...related }
  })

  server.setRequestHandler('tasks/cancel', { params: taskParams }, async ({ taskId }, ctx) => {
    const context = contextOf(ctx)
    const job = await readTask(context, taskId)
    if (isEnded(job)) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'The task has ended and cannot be cancelled.')
    }
    await cancelTask(context, taskId)
    return olderTask(await readTask(context, taskId), [])
  })

  server.setRequestHandler('tasks/list', { params: listParams }, async (params, ctx) => {
    const { api, signal } = contextOf(ctx)
    const query = { limit: BOUNDS.rowsMax, cursor: params?.cursor }
    const reply = await asProtocol(() => api.call({ method: 'GET', path: '/jobs', query, signal }))
    const tasks = rowsOf(reply.body).map((job) => olderTask(job, []))
    return { tasks, ...(reply.nextCursor === undefined ? {} : { nextCursor: reply.nextCursor }) }
  })
}

/** The job of a task, if the caller may see it. An id of another caller is as good as none. */
async function readTask({ api, signal }: ToolContext, taskId: string): Promise<JsonObject> {
  return asProtocol(async () =>
    objectOf((await api.call({ method: 'GET', path: pathTo('jobs', taskId), signal })).body),
  )
}

/** One that has ended stays as it is, and the answer is the same. */
async function cancelTask(context: ToolContext, taskId: string): Promise<void> {
  const job = await readTask(context, taskId)
  if (isEnded(job)) return
  const path = pathTo('jobs', taskId, 'cancel')
  const body = { reason: 'Cancelled by the MCP client.' }
  try {
    await context.api.call({ method: 'POST', path, body, signal: context.signal })
  } catch (error) {
    // It ended in between.
    if (!(error instanceof ApiError) || error.code !== 'JOB_NOT_FOUND') throw asProtocolError(error)
  }
}

async function asProtocol<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw asProtocolError(error)
  }
}

/** Refusals of the API in the words of the protocol. */
function asProtocolError(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error
  if (error.status === 404) return new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such task.')
  const code = error.status >= 500 ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams
  return new ProtocolError(code, `${error.message} (${error.code})`)
}
