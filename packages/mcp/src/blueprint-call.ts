import type { JsonObject } from '@impresario/protocol'
import { ApiError, pathTo } from './api.ts'
import { BOUNDS } from './bounds.ts'
import { isAtRest, isEnded, waitForJob } from './job-view.ts'
import { pendingOf, resultOf } from './job-result.ts'
import type { CallResult } from './job-result.ts'
import { putQuestions } from './line.ts'
import type { Line } from './line.ts'
import { answer, approvalPage, DECIDED, questionsOf } from './question.ts'
import type { Question } from './question.ts'
import type { TaskStyle } from './session.ts'
import { faultOf, inputRequests, olderTask, taskOf } from './task-view.ts'
import { objectOf, textOf } from './tool.ts'
import type { ToolContext } from './tool.ts'

/** A call of a blueprint as a tool: a new job, or the next round with a job that asked something. */
export interface BlueprintCall {
  readonly blueprint: string
  readonly args: JsonObject
  /** The job of an earlier round, from the state that we had signed. */
  readonly jobId: string | undefined
  /** Answers to what it asked, by the key of the question. */
  readonly responses: Readonly<Record<string, unknown>>
  /** How the client wants to follow a job that takes longer: as a task of which revision, or not at all. */
  readonly tasks: TaskStyle
  /** It is never waited for: clients that know tasks get one at once. */
  readonly isTaskOnly: boolean
  /** Whether the answer may be a question, which the next round brings an answer to. */
  readonly canAsk: boolean
  /** How the client is asked while the call is open. */
  readonly line: Line | undefined
  /** Seals the id of the job, for the next round. */
  readonly seal: (jobId: string) => Promise<string>
}

/** Starts the job, or answers its question, and gives what the caller can use: the result, a task, or a question. */
export async function callBlueprint(call: BlueprintCall, context: ToolContext): Promise<CallResult | JsonObject> {
  const jobId = call.jobId ?? (await start(call, context))
  if (call.jobId !== undefined) await reply(call, context, call.jobId)
  // The library asks for content in every answer to a call; clients of that revision read `task`.
  if (call.tasks === 'older') return { task: olderTask(await read(context, jobId), []), content: [] }
  if (call.tasks === 'extension') return asTask(call, context, jobId)
  const waited = await waitForJob(context, jobId, BOUNDS.waitSecondsMax * 1_000)
  const job = call.line === undefined ? waited : await putQuestions(call.line, context, waited)
  if (isEnded(job)) return resultOf(job)
  if (job['status'] === 'quarantined') return faulty(job)
  const questions = isAtRest(job) ? await questionsOf(context, job) : []
  if (questions.length === 0) return pendingOf(job)
  if (!call.canAsk) return withLink(context, job, questions)
  return {
    resultType: 'input_required',
    inputRequests: inputRequests(questions),
    requestState: await call.seal(jobId),
  }
}

/** What ends at once is answered at once. */
async function asTask(call: BlueprintCall, context: ToolContext, jobId: string): Promise<CallResult | JsonObject> {
  const job = await (call.isTaskOnly ? read(context, jobId) : waitForJob(context, jobId, BOUNDS.graceMs))
  return isEnded(job) && !call.isTaskOnly ? resultOf(job) : { resultType: 'task', ...taskOf(job, []) }
}

async function start({ blueprint, args }: BlueprintCall, { api, signal }: ToolContext): Promise<string> {
  const { body } = await api.call({ method: 'POST', path: '/jobs', body: { blueprint, initial_data: args }, signal })
  return textOf(objectOf(body)['job_id'])
}

/** Only what is still open is answered: the same round may come twice. */
async function reply({ responses }: BlueprintCall, context: ToolContext, jobId: string): Promise<void> {
  const questions = await questionsOf(context, await read(context, jobId))
  try {
    await answer(context, questions, responses)
  } catch (error) {
    if (!(error instanceof ApiError) || !DECIDED.has(error.code)) throw error
  }
}

async function read({ api, signal }: ToolContext, jobId: string): Promise<JsonObject> {
  return objectOf((await api.call({ method: 'GET', path: pathTo('jobs', jobId), signal })).body)
}

function faulty(job: JsonObject): CallResult {
  const text = `${faultOf(job).message} Job: ${textOf(job['job_id'])}.`
  return { content: [{ type: 'text', text }], structuredContent: pendingOf(job).structuredContent ?? {}, isError: true }
}

/** For clients that cannot show a form: the page on which a person decides. */
async function withLink(context: ToolContext, job: JsonObject, questions: readonly Question[]): Promise<CallResult> {
  const pending = pendingOf(job, questions)
  const links: string[] = []
  for (const { jobId } of questions) {
    const url = await approvalPage(context, jobId)
    if (url !== undefined) links.push(url)
  }
  if (links.length === 0) return pending
  const text = `A person can decide on this page: ${links.join(' ')}`
  return { ...pending, content: [...pending.content, { type: 'text', text }] }
}
