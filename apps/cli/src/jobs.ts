import { stringifyExact, toWire } from '@impresario/client'
import type { ExplainedChild, Job } from '@impresario/client'
import { readData } from './arguments.ts'
import { COMMAND, EXIT, Failure, usage } from './failure.ts'
import { Halt } from './halt.ts'
import { jobIdOf } from './job-prefix.ts'
import { paintActivity, paintStatus, printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { done, withServer } from './session.ts'
import type { GlobalOptions, Session } from './session.ts'
import { facts, table } from './table.ts'
import { ago, localTime, nowSeconds, span } from './time.ts'
import { LiveLine, momentLine, statusLine, TrailReader } from './watch.ts'

export interface ListOptions extends GlobalOptions {
  readonly status?: string
  readonly blueprint?: string
  readonly search?: string
  readonly since?: Date
  readonly until?: Date
  readonly owner?: string
  readonly limit: number
}

const PAGE = 100
/** What the table shows: all else may be long. */
const SHOWN = ['id', 'blueprintName', 'status', 'work', 'currentState', 'createdAt', 'endedAt'] as const

export function listJobs(options: ListOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { status, blueprint, search, since: createdAfter, until: createdBefore, owner, limit } = options
    const query = { status, blueprint, search, createdAfter, createdBefore, owner, limit: Math.min(limit, PAGE) }
    if (screen.isJson) {
      printJson(screen, await client.list(query).all(limit))
      return EXIT.ok
    }
    const jobs = await client.list({ ...query, fields: SHOWN }).all(limit)
    screen.out(jobs.length === 0 ? noJobs(options) : jobTable(screen, jobs))
    return EXIT.ok
  })
}

function noJobs({ status, blueprint, search, since, until, owner }: ListOptions): string {
  return [status, blueprint, search, since, until, owner].every((filter) => filter === undefined)
    ? `There are no jobs yet. Start one with "${COMMAND} jobs start <blueprint>".`
    : 'No matching jobs.'
}

function jobTable(screen: Screen, jobs: readonly Pick<Job, (typeof SHOWN)[number]>[]): string {
  const now = nowSeconds()
  return table(screen, jobs, [
    { title: 'job', cell: (job) => job.id },
    { title: 'blueprint', cell: (job) => job.blueprintName },
    { title: 'status', cell: (job) => paintActivity(screen, job) },
    { title: 'state', cell: (job) => job.currentState },
    { title: 'created', cell: (job) => ago(job.createdAt, now), align: 'right' },
    { title: 'took', cell: (job) => span((job.endedAt ?? now) - job.createdAt), align: 'right' },
  ])
}

export function showJob(given: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const jobId = await jobIdOf(client, given)
    const job = await client.job(jobId).status()
    if (screen.isJson) {
      printJson(screen, job)
      return EXIT.ok
    }
    const hasChildren = job.status === 'waiting_for_child' || job.status === 'waiting_for_parallel'
    const children = hasChildren ? (await client.explain(jobId)).children : []
    screen.out(jobPage(screen, job, children))
    return EXIT.ok
  })
}

function jobPage(screen: Screen, job: Job, children: readonly ExplainedChild[]): string {
  const now = nowSeconds()
  const ended = job.endedAt === undefined ? undefined : span(job.endedAt - job.createdAt)
  const parts = [
    facts(screen, [
      ['job', job.id],
      ['blueprint', `${job.blueprintName} (version ${job.blueprintVersion})`],
      ['status', paintActivity(screen, job)],
      ['state', job.currentState],
      ['created', ago(job.createdAt, now)],
      ['took', ended],
      ['parent', job.parentJobId],
      ['asks', job.approval === undefined ? undefined : screen.paint('yellow', job.approval.message)],
      ['waits', waitText(job, now)],
      ['undone', undoText(job)],
      ['progress', job.progress === undefined ? undefined : `${Math.round(job.progress * 100)} %`],
      ['error', job.errorMessage === undefined ? undefined : screen.paint('red', job.errorMessage)],
    ]),
    section(screen, 'Initial data', job.initialData),
    section(screen, 'State history', job.stateHistory),
    section(screen, 'Metadata', job.metadata),
    section(screen, 'Result', job.result),
    [screen.paint('bold', 'What happened'), ...job.trail.map((entry) => momentLine(screen, job, entry))].join('\n'),
  ]
  if (children.length > 0) parts.push(childrenPage(screen, children))
  const next = nextStep(job, children)
  if (next !== undefined) parts.push(screen.paint('yellow', next))
  return parts.filter((part) => part !== '').join('\n\n')
}

/** What the job has undone of what it did, and what is left. */
function undoText({ compensation }: Pick<Job, 'compensation'>): string | undefined {
  if (compensation === undefined) return undefined
  const { undone, left, outcome } = compensation
  const past = undone.length === 0 ? 'nothing yet' : undone.join(', ')
  return left.length === 0 ? past : `${past}; left: ${left.join(', ')}; then it ends as ${outcome}`
}

/** What the job waits for by itself, with the time that is left. */
function waitText({ waitsFor: wait }: Pick<Job, 'waitsFor'>, now: number): string | undefined {
  if (wait === undefined) return undefined
  const key = wait.key === undefined ? '' : ` with the key ${wait.key}`
  const event = wait.topic === undefined ? [] : [`for the event ${wait.topic}${key}`]
  const left = (until: number): string => `until ${localTime(until)}, ${span(Math.max(0, until - now))} from now`
  return [...event, ...(wait.until === undefined ? [] : [left(wait.until)])].join(' ')
}

function section(screen: Screen, title: string, value: unknown): string {
  if (value === undefined || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)) return ''
  return `${screen.paint('bold', title)}\n${stringifyExact(value, 2)}`
}

/** The jobs that a job waits for. */
export function childrenPage(screen: Screen, children: readonly ExplainedChild[]): string {
  const rows = table(screen, children, [
    { title: 'job', cell: (child) => child.jobId },
    { title: 'blueprint', cell: (child) => child.blueprintName },
    { title: 'status', cell: (child) => (child.status === null ? '' : paintStatus(screen, child.status)) },
  ])
  return `${screen.paint('bold', children.length === 1 ? 'Its child' : 'Its children')}\n${rows}`
}

const CHILD_ENDED: ReadonlySet<string | null> = new Set(['finished', 'failed', 'cancelled', 'error'])

/** What a person can do about a job that stands still. */
export function nextStep(
  job: Pick<Job, 'id' | 'status'>,
  children: readonly ExplainedChild[] = [],
): string | undefined {
  const child = children.find(({ status }) => !CHILD_ENDED.has(status))
  if (child !== undefined) return `It waits for its child: ${COMMAND} explain ${child.jobId}`
  if (job.status === 'waiting_for_human') return `It waits for you: ${COMMAND} jobs approve ${job.id}`
  if (job.status === 'waiting_for_worker') return `Why it waits: ${COMMAND} explain ${job.id}`
  if (job.status === 'waiting_for_event') {
    return `It waits for an event: ${COMMAND} jobs send ${job.id} <topic> --data '{}'`
  }
  if (job.status === 'quarantined') {
    return `After fixing the cause: ${COMMAND} jobs retry ${job.id}. To give up: ${COMMAND} jobs discard ${job.id}`
  }
  return undefined
}

interface StartOptions extends WatchOptions {
  readonly data?: string
  readonly key?: string
  readonly priority?: number
  readonly webhook?: string
  readonly metadata?: string
  readonly watch?: boolean
}

export function startJob(blueprint: string, options: StartOptions): Promise<number> {
  return withServer(options, async (session) => {
    const { client, screen } = session
    const { key, priority, webhook } = options
    if (options.timeout !== undefined && options.watch !== true) throw usage('--timeout needs --watch.')
    if (options.data === '-' && options.metadata === '-') throw usage('Only one of --data and --metadata can be -.')
    const metadata = options.metadata === undefined ? undefined : await readData('--metadata', options.metadata)
    const job = await client.start(
      blueprint,
      options.data === undefined ? {} : await readData('--data', options.data),
      {
        ...(metadata === undefined ? {} : { metadata }),
        ...(key === undefined ? {} : { idempotencyKey: key }),
        ...(priority === undefined ? {} : { priority }),
        ...(webhook === undefined ? {} : { webhookUrl: webhook }),
      },
    )
    if (screen.isJson && options.watch !== true) printJson(screen, { job_id: job.id })
    if (!screen.isJson) screen.out(`Started job ${screen.paint('bold', job.id)}`)
    if (options.watch === true) return watch(session, job.id, options.timeout)
    if (!screen.isJson) screen.out(screen.paint('dim', `Watch it: ${COMMAND} jobs watch ${job.id}`))
    return EXIT.ok
  })
}

export function cancelJob(given: string, options: GlobalOptions & { readonly reason?: string }): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const jobId = await jobIdOf(client, given)
    await client.cancel(jobId, options.reason)
    return done(screen, `Job ${jobId} is cancelled.`)
  })
}

export interface RetryJobOptions extends GlobalOptions {
  readonly data?: string
  readonly to?: string
}

export function retryJob(given: string, options: RetryJobOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const jobId = await jobIdOf(client, given)
    const initialData = options.data === undefined ? undefined : await readData('--data', options.data)
    if (options.to !== undefined) {
      const again = await client.job(jobId).rerun({ from: options.to, initialData })
      return done(screen, `Job ${again.id} was started from the state "${options.to}" of job ${jobId}.`, {
        job_id: again.id,
      })
    }
    await client.job(jobId).retry({ initialData })
    return done(screen, `Job ${jobId} was retried.`)
  })
}

export function discardJob(given: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const jobId = await jobIdOf(client, given)
    await client.job(jobId).discard()
    return done(screen, `Job ${jobId} was discarded.`)
  })
}

export interface WatchOptions extends GlobalOptions {
  /** In milliseconds. */
  readonly timeout?: number
}

export function watchJob(given: string, options: WatchOptions): Promise<number> {
  return withServer(options, async (session) => watch(session, await jobIdOf(session.client, given), options.timeout))
}

/** Follows a job to its end, or into quarantine. As JSON: the whole job in one line, at every change. */
async function watch({ client, screen }: Session, jobId: string, timeoutMs: number | undefined): Promise<number> {
  const live = new LiveLine(screen, (text) => process.stdout.write(text))
  const reader = new TrailReader()
  const halt = new Halt(client, (line) => live.print(screen.paint('yellow', line)))
  const signal = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
  let last: Job | undefined
  try {
    for await (const job of client.job(jobId).watch(signal === undefined ? {} : { signal })) {
      last = job
      if (screen.isJson) {
        screen.out(stringifyExact(toWire(job)))
      } else {
        for (const entry of reader.next(job.trail)) live.print(momentLine(screen, job, entry))
        halt.look(job)
        live.show((frame) => statusLine(screen, job, frame))
      }
      // Nothing more will happen until a person decides.
      if (job.status === 'quarantined') break
    }
  } catch (error) {
    if (signal?.aborted === true) throw timedOut(jobId, timeoutMs ?? 0, last)
    throw error
  } finally {
    halt.stop()
    live.stop()
  }
  if (last === undefined) throw new Failure('INTERNAL', `The server returned nothing about job ${jobId}.`)
  if (!screen.isJson) screen.out(ending(screen, last))
  return last.status === 'finished' ? EXIT.ok : EXIT.notFinished
}

function timedOut(jobId: string, timeoutMs: number, last: Job | undefined): Failure {
  const message = `Job ${jobId} did not end within ${span(timeoutMs / 1_000)}. It keeps running.`
  const hint = last === undefined ? undefined : nextStep(last)
  return new Failure('TIMEOUT', message, { exitCode: EXIT.timedOut, ...(hint === undefined ? {} : { hint }) })
}

function ending(screen: Screen, job: Job): string {
  const took = span((job.endedAt ?? job.updatedAt) - job.createdAt)
  const head = `${screen.paint('bold', job.blueprintName)} ${paintStatus(screen, job.status)} after ${took}`
  const error = job.errorMessage === undefined ? [] : [screen.paint('red', job.errorMessage)]
  const isEmpty = job.status !== 'finished' && stringifyExact(job.result ?? {}) === '{}'
  const result = job.result === undefined || isEmpty ? [] : [stringifyExact(job.result, 2)]
  const next = nextStep(job)
  return ['', head, ...error, ...result, ...(next === undefined ? [] : [next])].join('\n')
}
