import type { Json, JsonObject } from '@impresario/protocol'
import { isJsonObject } from '@impresario/protocol'
import { ApiError, pathTo } from './api.ts'
import { BOUNDS } from './bounds.ts'
import { objectOf, rowsOf, textOf } from './tool.ts'
import type { ToolContext } from './tool.ts'

/** What a job, or a child of it, asks a person. */
export interface Question {
  /** The same as long as it is the same question, and never used for another one. */
  readonly key: string
  readonly jobId: string
  readonly visit: number
  readonly message: string
  readonly decisions: readonly string[]
}

type Asking = Pick<ToolContext, 'api' | 'signal'>

/** The open questions of a job: its own, else those of the children that it waits for. */
export async function questionsOf(context: Asking, job: JsonObject): Promise<readonly Question[]> {
  const own = questionIn(job)
  if (own !== undefined) return [own]
  if (!PARENT_STATUSES.has(textOf(job['status']))) return []
  const path = pathTo('jobs', textOf(job['job_id']), 'explain')
  const { body } = await context.api.call({ method: 'GET', path, signal: context.signal })
  const asking = rowsOf(objectOf(body)['children'] ?? [])
    .filter(({ status }) => status === 'waiting_for_human')
    .slice(0, BOUNDS.questionsMax)
  const questions = await Promise.all(asking.map(({ job_id: id }) => questionOf(context, textOf(id))))
  return questions.filter((question) => question !== undefined)
}

const PARENT_STATUSES: ReadonlySet<string> = new Set(['waiting_for_child', 'waiting_for_parallel'])

async function questionOf({ api, signal }: Asking, jobId: string): Promise<Question | undefined> {
  try {
    return questionIn(objectOf((await api.call({ method: 'GET', path: pathTo('jobs', jobId), signal })).body))
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  }
}

/** What this job asks itself. */
export function questionIn(job: JsonObject): Question | undefined {
  const { approval } = job
  if (!isJsonObject(approval)) return undefined
  const { message, decisions, visit } = approval
  const jobId = textOf(job['job_id'])
  const asked = typeof visit === 'number' ? visit : 0
  return {
    key: `${jobId}:${asked}`,
    jobId,
    visit: asked,
    message: textOf(message),
    decisions: Array.isArray(decisions) ? decisions.map(String) : [],
  }
}

/** A question as a form: one choice, and room for a comment. */
export function elicitation({ message, decisions }: Question): JsonObject {
  return {
    mode: 'form',
    message,
    requestedSchema: {
      type: 'object',
      properties: {
        decision: { type: 'string', title: 'Decision', enum: decisions },
        comment: { type: 'string', title: 'Comment', maxLength: 2_000 },
      },
      required: ['decision'],
    },
  }
}

const YES: ReadonlySet<string> = new Set(['approve', 'approved', 'accept', 'confirm', 'confirmed', 'yes', 'ok'])
const NO: ReadonlySet<string> = new Set(['reject', 'rejected', 'deny', 'denied', 'decline', 'cancel', 'no'])

/**
 * What a person chose in the form. Clients that show yes and no in place of the form send a single boolean: it counts where
 * the question has a decision of that meaning. `undefined`: nothing was decided, and the question stays open.
 */
function decisionIn(question: Question, response: Json | undefined): Answer | undefined {
  if (!isJsonObject(response) || response['action'] !== 'accept') return undefined
  const content = objectOf(response['content'] ?? {})
  const comment = textOf(content['comment']).slice(0, 2_000)
  const told = content['decision']
  if (typeof told === 'string') return question.decisions.includes(told) ? { decision: told, comment } : undefined
  const booleans = Object.values(content).filter((value) => typeof value === 'boolean')
  if (booleans.length !== 1) return undefined
  const words = booleans[0] === true ? YES : NO
  const decision = question.decisions.find((one) => words.has(one.toLowerCase()))
  return decision === undefined ? undefined : { decision, comment }
}

const DECLINED: ReadonlySet<Json | undefined> = new Set(['decline', 'cancel'])

/** Why the first of the answers that cannot be meant is refused. One that declines to decide leaves its question open. */
export function problemIn(
  questions: readonly Question[],
  responses: Readonly<Record<string, unknown>>,
): string | undefined {
  for (const question of questions) {
    const response = responses[question.key] as Json | undefined
    if (response === undefined || decisionIn(question, response) !== undefined) continue
    const place = `The answer to "${question.key}"`
    if (!isJsonObject(response)) return `${place} must be an object with "action" and "content".`
    const { action } = response
    if (DECLINED.has(action)) continue
    if (action !== 'accept') return `${place} must have the "action" accept, decline or cancel.`
    const told = objectOf(response['content'] ?? {})['decision']
    const wrong = typeof told === 'string' ? `has the decision "${told.slice(0, 100)}"` : 'has no decision'
    return `${place} ${wrong}. Put one of these into "content.decision": ${question.decisions.join(', ')}.`
  }
  return undefined
}

interface Answer {
  readonly decision: string
  readonly comment: string
}

/** Gives one answer. Returns whether the question is decided: an answer that does not fit decides nothing. */
export async function answerOnce(context: Asking, question: Question, response: JsonObject): Promise<boolean> {
  try {
    return (await answer(context, [question], { [question.key]: response })) === 1
  } catch (error) {
    if (error instanceof ApiError && DECIDED.has(error.code)) return true
    throw error
  }
}

/** What the API says of a question that is no longer open. */
export const DECIDED: ReadonlySet<string> = new Set(['NOT_WAITING', 'STALE_DECISION'])

/** The page on which a person decides. Callers that may only start jobs get none. */
export async function approvalPage(
  { api, signal, base }: Pick<ToolContext, 'api' | 'signal' | 'base'>,
  jobId: string,
): Promise<string | undefined> {
  try {
    const { body } = await api.call({ method: 'GET', path: pathTo('jobs', jobId, 'approval'), signal })
    return `${base}${textOf(objectOf(body)['url']).replace(/^[a-z]+:\/\/[^/]+/i, '')}`
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

/** Gives answers to the questions they belong to. Answers to questions that are not open are ignored. */
export async function answer(
  { api, signal }: Asking,
  questions: readonly Question[],
  responses: Readonly<Record<string, unknown>>,
): Promise<number> {
  let answered = 0
  for (const question of questions) {
    const found = decisionIn(question, responses[question.key] as Json | undefined)
    if (found === undefined) continue
    const { decision, comment } = found
    const body = { decision, visit: question.visit, ...(comment === '' ? {} : { comment }) }
    const path = `/_public/webhooks/approval${pathTo(question.jobId)}`
    await api.call({ method: 'POST', path, isAbsolute: true, body, signal })
    answered += 1
  }
  return answered
}
