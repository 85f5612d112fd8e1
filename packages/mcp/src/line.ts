import type { ServerContext } from '@modelcontextprotocol/server'
import type { JsonObject } from '@impresario/protocol'
import { BOUNDS } from './bounds.ts'
import type { CallerInfo } from './caller.ts'
import type { Inquiries, Inquiry } from './inquiries.ts'
import { isAtRest, isEnded, jobOf, waitForJob } from './job-view.ts'
import { approvalPage, answerOnce, elicitation, questionIn, questionsOf } from './question.ts'
import type { Question } from './question.ts'
import { capabilitiesOf, knowsForms, knowsLinks } from './session.ts'
import type { LowServer } from './session.ts'
import { textOf } from './tool.ts'
import type { ToolContext } from './tool.ts'

/** How a client of 2025-11-25 is asked while its call is open. */
export interface Line {
  readonly mode: 'form' | 'url'
  /** Sends a question of this form. The answer may come to another instance; then the job moves on, and `heard` stays open. */
  ask(params: JsonObject, question: Question | undefined, signal: AbortSignal): Inquiry
  tell(method: string, params: JsonObject): void
}

export type LineOf = (ctx: ServerContext) => Line | undefined

/** The line to the client of a request; `undefined` if it cannot ask people anything. */
export function lineTo(
  server: LowServer,
  inquiries: Inquiries,
  { callerId, greeted }: CallerInfo,
  ctx: ServerContext,
): Line | undefined {
  const capabilities = capabilitiesOf(ctx, server, greeted)
  const mode = knowsForms(capabilities) ? 'form' : knowsLinks(capabilities) ? 'url' : undefined
  if (mode === undefined) return undefined
  const send = (message: JsonObject): void => {
    // Boundary: a message in the shape of the protocol. A client that is gone aborts the call anyway.
    const text = { jsonrpc: '2.0', ...message } as unknown as Parameters<
      NonNullable<typeof server.transport>['send']
    >[0]
    server.transport?.send(text, { relatedRequestId: ctx.mcpReq.id }).catch(() => undefined)
  }
  return {
    mode,
    ask: (params, question, signal) => {
      const inquiry = inquiries.open(callerId, question, signal)
      const id = inquiry.id
      const whole = mode === 'url' && question !== undefined ? { ...params, elicitationId: id } : params
      send({ id, method: 'elicitation/create', params: whole })
      return inquiry
    },
    tell: (method, params) => send({ method, params }),
  }
}

/** Questions that one call puts one after the other. */
const ROUNDS_MAX = 20

/** Puts the questions of a job to the client, until the job goes on without one or there is no answer. Gives the job as it is then. */
export async function putQuestions(line: Line, context: ToolContext, job: JsonObject): Promise<JsonObject> {
  let now = job
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const [question] = isAtRest(now) && !isEnded(now) ? await questionsOf(context, now) : []
    if (question === undefined || !(await put(line, context, question))) return now
    now = await waitForJob(context, textOf(job['job_id']), BOUNDS.waitSecondsMax * 1_000)
  }
  return now
}

/** Whether the question was decided, here or elsewhere. */
async function put(line: Line, context: ToolContext, question: Question): Promise<boolean> {
  const params = line.mode === 'form' ? elicitation(question) : await linkTo(context, question)
  if (params === undefined) return false
  const over = new AbortController()
  const signal = AbortSignal.any([context.signal, over.signal, AbortSignal.timeout(BOUNDS.askSecondsMax * 1_000)])
  const { id, heard } = line.ask(params, question, signal)
  const moved = movesOn(context, question, signal)
  try {
    const first = await Promise.race([heard.then((result) => ({ result })), moved.then((isDecided) => ({ isDecided }))])
    if ('isDecided' in first) {
      if (first.isDecided) line.tell('notifications/cancelled', { requestId: id, reason: 'It was decided elsewhere.' })
      return told(line, id, first.isDecided)
    }
    if (first.result?.['action'] !== 'accept') return false
    if (line.mode === 'form') return await answerOnce(context, question, first.result)
    // The person has gone to the page. What they do there shows in the job.
    return told(line, id, await moved)
  } finally {
    over.abort()
  }
}

/** A client that leads to a page hears when it is no longer needed. */
function told(line: Line, elicitationId: string, isDecided: boolean): boolean {
  if (isDecided && line.mode === 'url') line.tell('notifications/elicitation/complete', { elicitationId })
  return isDecided
}

async function linkTo(context: ToolContext, question: Question): Promise<JsonObject | undefined> {
  const url = await approvalPage(context, question.jobId)
  return url === undefined ? undefined : { mode: 'url', message: question.message, url }
}

/** Resolves with true when the job no longer asks this, with false when the signal aborts first. */
async function movesOn(context: ToolContext, question: Question, signal: AbortSignal): Promise<boolean> {
  try {
    let job = await jobOf(context, question.jobId, signal)
    for (let round = 1; questionIn(job)?.key === question.key; round++) {
      context.progress({ done: round, message: `Waits for a person: ${question.message}` })
      job = await jobOf(context, question.jobId, signal, { wait: BOUNDS.progressSeconds, since: job })
      if (signal.aborted) return false
    }
    return true
  } catch (error) {
    if (signal.aborted) return false
    throw error
  }
}
