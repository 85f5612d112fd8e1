import { isImpresarioError, stringifyExact } from '@impresario/client'
import type { Approval, JobHandle } from '@impresario/client'
import { readData } from './arguments.ts'
import { COMMAND, EXIT, usage } from './failure.ts'
import { jobIdOf } from './job-prefix.ts'
import { printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { done, withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { facts } from './table.ts'
import { localTime } from './time.ts'

export interface ApproveOptions extends GlobalOptions {
  readonly comment?: string
  readonly visit?: number
  readonly data?: string
}

/** Names the question that was answered last, where none is open. */
const ANSWERED_LAST = 0

/** Decides what a job asks; without a decision, shows what it asks and which decisions there are. */
export function approveJob(given: string, decision: string | undefined, options: ApproveOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const jobId = await jobIdOf(client, given)
    const job = client.job(jobId)
    const { comment } = options
    if (decision === undefined) {
      const question = await job.approval()
      if (comment !== undefined) throw usage('A comment needs a decision.', decisionsOf(question))
      if (options.data !== undefined) throw usage('Data needs a decision.', decisionsOf(question))
      if (screen.isJson) printJson(screen, question)
      else screen.out(questionPage(screen, question))
      return EXIT.ok
    }
    const question = await openQuestion(job)
    const visit = options.visit ?? question?.visit ?? ANSWERED_LAST
    if (question !== undefined && visit === question.visit && !question.decisions.includes(decision)) {
      throw usage(`"${decision}" is not among the decisions.`, decisionsOf(question))
    }
    const data = options.data === undefined ? undefined : await readData('--data', options.data)
    await job.approve(decision, { comment, visit, data })
    return done(screen, `Decision "${decision}" recorded for job ${jobId}.`)
  })
}

/** The answer to this very decision may have been lost: the server knows whether it was made. */
async function openQuestion(job: JobHandle): Promise<Approval | undefined> {
  try {
    return await job.approval()
  } catch (error) {
    if (isImpresarioError(error, 'NOT_WAITING')) return undefined
    throw error
  }
}

function decisionsOf({ decisions }: Approval): string {
  return `Possible decisions: ${decisions.join(', ')}.`
}

function questionPage(screen: Screen, question: Approval): string {
  const { expiresAt, urlsExpireAt: linksUntil, visit } = question
  const answer = (decision: string): string =>
    screen.paint(
      'cyan',
      `  ${COMMAND} jobs approve ${question.jobId} ${decision} --visit ${visit}${question.formFor?.includes(decision) === true ? " --data '{…}'" : ''}`,
    )
  return [
    `${screen.paint('yellow', '?')} ${screen.paint('bold', question.message)}`,
    '',
    facts(screen, [
      ['job', question.jobId],
      ['blueprint', question.blueprintName],
      ['expires', expiresAt === undefined ? undefined : localTime(expiresAt)],
      ['reminders', question.reminders === 0 ? undefined : String(question.reminders)],
    ]),
    '',
    ...(question.form === undefined ? [] : ['It asks for data of this form:', stringifyExact(question.form, 2), '']),
    'Answer with one of:',
    ...question.decisions.map(answer),
    '',
    `Or share this link with the person who decides, until ${localTime(linksUntil)}; it needs no token:`,
    `  ${question.url}`,
  ].join('\n')
}
