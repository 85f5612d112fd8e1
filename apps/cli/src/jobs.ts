import { readFile } from 'node:fs/promises'
import { text as textOf } from 'node:stream/consumers'
import type { Job } from '@impresario/client'
import { COMMAND, EXIT, Failure, usage } from './failure.ts'
import { paintStatus, printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { post, withServer } from './session.ts'
import type { GlobalOptions, Session } from './session.ts'
import { facts, table } from './table.ts'
import { ago, nowSeconds, span } from './time.ts'
import { LiveLine, momentLine, statusLine, TrailReader } from './watch.ts'

export interface ListOptions extends GlobalOptions {
  readonly status?: string
  readonly blueprint?: string
  readonly limit: number
}

export function listJobs(options: ListOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { status, blueprint, limit } = options
    const jobs: Job[] = []
    const query = { ...(status === undefined ? {} : { status }), ...(blueprint === undefined ? {} : { blueprint }) }
    for await (const job of client.list({ ...query, limit: Math.min(limit, 100) })) {
      jobs.push(job)
      if (jobs.length === limit) break
    }
    if (screen.isJson) printJson(screen, jobs)
    else screen.out(jobs.length === 0 ? noJobs(options) : jobTable(screen, jobs))
    return EXIT.ok
  })
}

function noJobs({ status, blueprint }: ListOptions): string {
  return status === undefined && blueprint === undefined
    ? `There are no jobs yet. Start one with "${COMMAND} jobs start <blueprint>".`
    : 'No job is like that.'
}

function jobTable(screen: Screen, jobs: readonly Job[]): string {
  const now = nowSeconds()
  return table(screen, jobs, [
    { title: 'job', cell: (job) => job.id },
    { title: 'blueprint', cell: (job) => job.blueprint_name },
    { title: 'status', cell: (job) => paintStatus(screen, job.status) },
    { title: 'state', cell: (job) => job.current_state },
    { title: 'created', cell: (job) => ago(job.created_at, now), align: 'right' },
    { title: 'took', cell: (job) => span((job.ended_at ?? now) - job.created_at), align: 'right' },
  ])
}

export function showJob(jobId: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const job = await client.job(jobId).status()
    if (screen.isJson) printJson(screen, job)
    else screen.out(jobPage(screen, job))
    return EXIT.ok
  })
}

function jobPage(screen: Screen, job: Job): string {
  const now = nowSeconds()
  const ended = job.ended_at === undefined ? undefined : span(job.ended_at - job.created_at)
  const parts = [
    facts(screen, [
      ['job', job.id],
      ['blueprint', `${job.blueprint_name} (version ${job.blueprint_version})`],
      ['status', paintStatus(screen, job.status)],
      ['state', job.current_state],
      ['created', ago(job.created_at, now)],
      ['took', ended],
      ['parent', job.parent_job_id],
      ['progress', job.progress === undefined ? undefined : `${Math.round(job.progress * 100)} %`],
      ['error', job.error_message === undefined ? undefined : screen.paint('red', job.error_message)],
    ]),
    section(screen, 'Initial data', job.initial_data),
    section(screen, 'State history', job.state_history),
    section(screen, 'Result', job.result),
    [screen.paint('bold', 'What happened'), ...job.trail.map((entry) => momentLine(screen, job, entry))].join('\n'),
  ]
  const next = nextStep(job)
  if (next !== undefined) parts.push(screen.paint('yellow', next))
  return parts.filter((part) => part !== '').join('\n\n')
}

function section(screen: Screen, title: string, value: unknown): string {
  if (value === undefined || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)) return ''
  return `${screen.paint('bold', title)}\n${JSON.stringify(value, undefined, 2)}`
}

/** What a person can do about a job that stands still. */
function nextStep(job: Job): string | undefined {
  if (job.status === 'waiting_for_human') return `It waits for you: ${COMMAND} jobs approve ${job.id}`
  if (job.status === 'waiting_for_worker') return `Why it waits: ${COMMAND} explain ${job.id}`
  if (job.status === 'quarantined') {
    return `Once its cause is mended: ${COMMAND} jobs retry ${job.id}, or give it up with: ${COMMAND} jobs discard ${job.id}`
  }
  return undefined
}

interface StartOptions extends GlobalOptions {
  readonly data?: string
  readonly key?: string
  readonly priority?: number
  readonly watch?: boolean
}

export function startJob(blueprint: string, options: StartOptions): Promise<number> {
  return withServer(options, async (session) => {
    const { client, screen } = session
    const { key, priority } = options
    const job = await client.start(blueprint, await readData(options.data), {
      ...(key === undefined ? {} : { idempotencyKey: key }),
      ...(priority === undefined ? {} : { priority }),
    })
    if (screen.isJson && options.watch !== true) printJson(screen, { job_id: job.id })
    if (!screen.isJson) screen.out(`Started job ${screen.paint('bold', job.id)}`)
    if (options.watch === true) return watch(session, job.id)
    if (!screen.isJson) screen.out(screen.paint('dim', `Watch it: ${COMMAND} jobs watch ${job.id}`))
    return EXIT.ok
  })
}

type Data = NonNullable<Parameters<Session['client']['start']>[1]>

/** JSON on the command line, from a file as `@file`, or from standard input as `-`. */
async function readData(given: string | undefined): Promise<Data> {
  if (given === undefined) return {}
  const json = await dataText(given)
  try {
    return dataObject(JSON.parse(json))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw usage(`The initial data is no JSON object: ${reason}`, `It looks like --data '{"title": "First light"}'.`)
  }
}

async function dataText(given: string): Promise<string> {
  if (given === '-') return textOf(process.stdin)
  if (!given.startsWith('@')) return given
  return readFile(given.slice(1), 'utf8').catch((error: unknown) => {
    throw usage(`The initial data cannot be read from "${given.slice(1)}": ${String(error)}`)
  })
}

function dataObject(value: unknown): Data {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('it is something else')
  return value as Data
}

export function cancelJob(jobId: string, options: GlobalOptions & { readonly reason?: string }): Promise<number> {
  return command(options, `Job ${jobId} is cancelled.`, ({ client }) => client.cancel(jobId, options.reason))
}

export function approveJob(
  jobId: string,
  decision: string,
  options: GlobalOptions & { readonly comment?: string },
): Promise<number> {
  return command(options, `Job ${jobId} got the decision "${decision}".`, ({ client }) =>
    client.approve(jobId, decision, options.comment),
  )
}

export function retryJob(jobId: string, options: GlobalOptions & { readonly data?: string }): Promise<number> {
  return command(options, `Job ${jobId} tries again.`, async (session) => {
    const body = options.data === undefined ? {} : { initial_data: await readData(options.data) }
    await post(session, `/api/v1/jobs/${encodeURIComponent(jobId)}/retry`, body)
  })
}

export function discardJob(jobId: string, options: GlobalOptions): Promise<number> {
  return command(options, `Job ${jobId} is given up.`, (session) =>
    post(session, `/api/v1/jobs/${encodeURIComponent(jobId)}/discard`, {}),
  )
}

/** A command that has no answer but that it worked. */
async function command(
  options: GlobalOptions,
  done: string,
  act: (session: Session) => Promise<unknown>,
): Promise<number> {
  return withServer(options, async (session) => {
    await act(session)
    const { screen } = session
    if (screen.isJson) printJson(screen, { status: 'ok' })
    else screen.out(`${screen.paint('green', '✓')} ${done}`)
    return EXIT.ok
  })
}

export function watchJob(jobId: string, options: GlobalOptions): Promise<number> {
  return withServer(options, (session) => watch(session, jobId))
}

/** Follows a job to its end, or into quarantine. As JSON: the whole job in one line, at every change. */
async function watch({ client, screen }: Session, jobId: string): Promise<number> {
  const live = new LiveLine(screen, (text) => process.stdout.write(text))
  const reader = new TrailReader()
  let last: Job | undefined
  try {
    for await (const job of client.job(jobId).watch()) {
      last = job
      if (screen.isJson) {
        screen.out(JSON.stringify(job))
      } else {
        for (const entry of reader.next(job.trail)) live.print(momentLine(screen, job, entry))
        live.show((frame) => statusLine(screen, job, frame))
      }
      // Nothing more will happen until a person decides.
      if (job.status === 'quarantined') break
    }
  } finally {
    live.stop()
  }
  if (last === undefined) throw new Failure('INTERNAL', `The server told nothing about job ${jobId}.`)
  if (!screen.isJson) screen.out(ending(screen, last))
  return last.status === 'finished' ? EXIT.ok : EXIT.notFinished
}

function ending(screen: Screen, job: Job): string {
  const took = span((job.ended_at ?? job.updated_at) - job.created_at)
  const head = `${screen.paint('bold', job.blueprint_name)} ${paintStatus(screen, job.status)} after ${took}`
  const error = job.error_message === undefined ? [] : [screen.paint('red', job.error_message)]
  const result = job.result === undefined ? [] : [JSON.stringify(job.result, undefined, 2)]
  const next = nextStep(job)
  return ['', head, ...error, ...result, ...(next === undefined ? [] : [next])].join('\n')
}
