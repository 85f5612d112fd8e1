import { createInterface } from 'node:readline/promises'
import { stringifyExact } from '@impresario/client'
import type { BulkReply, Client, ListedQuarantinedJob, QuarantinedJob } from '@impresario/client'
import { readData } from './arguments.ts'
import { COMMAND, EXIT, usage } from './failure.ts'
import { jobIdOf } from './job-prefix.ts'
import { printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { done, withServer } from './session.ts'
import type { GlobalOptions, Session } from './session.ts'
import { facts, table } from './table.ts'
import { ago, nowSeconds } from './time.ts'

export interface FilterOptions extends GlobalOptions {
  readonly blueprint?: string
  readonly code?: string
  readonly olderThan?: number
  readonly owner?: string
  readonly limit?: number
}

export interface BulkOptions extends FilterOptions {
  readonly all?: boolean
  readonly yes?: boolean
}

const PAGE = 100

function found(client: Client, { blueprint, code, olderThan, owner, limit }: FilterOptions) {
  const query = { blueprint, errorCode: code, olderThanMs: olderThan, owner, limit: Math.min(limit ?? PAGE, PAGE) }
  return client.quarantine.list(query).all(limit)
}

export function listQuarantine(options: FilterOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const jobs = await found(client, options)
    if (screen.isJson) printJson(screen, jobs)
    else screen.out(jobs.length === 0 ? 'No job is in quarantine.' : jobTable(screen, jobs))
    return EXIT.ok
  })
}

function jobTable(screen: Screen, jobs: readonly ListedQuarantinedJob[]): string {
  const now = nowSeconds()
  const rows = table(screen, jobs, [
    { title: 'job', cell: (job) => job.id },
    { title: 'blueprint', cell: (job) => job.blueprintName },
    { title: 'state', cell: (job) => job.error?.state ?? job.currentState },
    { title: 'since', cell: (job) => ago(job.quarantinedAt, now), align: 'right' },
    { title: 'code', cell: (job) => job.error?.code ?? '–' },
    { title: 'error', cell: (job) => firstLine(job.error?.message ?? '', screen) },
  ])
  return `${rows}\n\n${screen.paint('dim', `All about one: ${COMMAND} quarantine show <job>`)}`
}

/** A terminal wraps long lines and spoils the columns; a program gets all of it. */
function firstLine(text: string, screen: Screen): string {
  const [line = ''] = text.split('\n', 1)
  return screen.isTerminal && line.length > 60 ? `${line.slice(0, 59)}…` : line
}

export function showQuarantined(given: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const job = await client.job(await jobIdOf(client, given)).quarantined()
    if (screen.isJson) printJson(screen, job)
    else screen.out(quarantinedPage(screen, job))
    return EXIT.ok
  })
}

function quarantinedPage(screen: Screen, job: QuarantinedJob): string {
  const { error } = job
  const data = (title: string, value: object): string => `${screen.paint('bold', title)}\n${stringifyExact(value, 2)}`
  return [
    facts(screen, [
      ['job', job.id],
      ['blueprint', `${job.blueprintName} (version ${job.blueprintVersion})`],
      ['state', error?.state ?? job.currentState],
      ['since', ago(job.quarantinedAt, nowSeconds())],
      ['code', error?.code],
      ['error', error === undefined ? undefined : screen.paint('red', error.message)],
    ]),
    ...(error?.stack === undefined ? [] : [screen.paint('dim', error.stack)]),
    data('Initial data', job.initialData),
    data('State history', job.stateHistory),
    [
      'After fixing the cause:',
      screen.paint('cyan', `  ${COMMAND} quarantine retry ${job.id}`),
      'With changed data:',
      screen.paint('cyan', `  ${COMMAND} quarantine edit ${job.id}`),
      'To give up:',
      screen.paint('cyan', `  ${COMMAND} quarantine discard ${job.id}`),
    ].join('\n'),
  ].join('\n\n')
}

export function retryQuarantined(jobIds: readonly string[], options: BulkOptions): Promise<number> {
  return inBulk(jobIds, options, {
    question: 'try again',
    done: 'retried',
    act: (client, ids) => client.quarantine.retry({ ids }),
  })
}

export function discardQuarantined(jobIds: readonly string[], options: BulkOptions): Promise<number> {
  return inBulk(jobIds, options, {
    question: 'be given up for good',
    done: 'discarded',
    act: (client, ids) => client.quarantine.discard({ ids }),
  })
}

interface Command {
  readonly question: string
  readonly done: string
  readonly act: (client: Client, ids: readonly string[]) => Promise<BulkReply>
}

/** As many as the server takes at once. */
const BATCH = 500

/**
 * Jobs that are named, or all that fit. The latter are looked up first and then named, so that a job which comes back
 * into quarantine meanwhile is not sent round and round, and so that the question says how many there are.
 */
function inBulk(jobIds: readonly string[], options: BulkOptions, command: Command): Promise<number> {
  checkSelection(jobIds, options)
  return withServer(options, async (session) => {
    const { client, screen } = session
    const ids =
      jobIds.length > 0
        ? await Promise.all(jobIds.map((id) => jobIdOf(client, id)))
        : (await found(client, options)).map((job) => job.id)
    if (jobIds.length === 0 && ids.length > 0 && !(await isWanted(session, ids.length, options, command))) {
      screen.err('Nothing was done.')
      return EXIT.failure
    }
    const results: BulkReply['results'][number][] = []
    for (let at = 0; at < ids.length; at += BATCH) {
      results.push(...(await command.act(client, ids.slice(at, at + BATCH))).results)
    }
    return report(screen, results, command)
  })
}

function checkSelection(jobIds: readonly string[], options: BulkOptions): void {
  const { all, blueprint, code, olderThan, owner, limit } = options
  const isFiltered = [blueprint, code, olderThan, owner, limit].some((value) => value !== undefined)
  const hint = 'Name jobs, or use --all, optionally with --blueprint, --code, --older-than and --limit.'
  if (jobIds.length > 0 && (all === true || isFiltered)) throw usage('Name jobs or use --all, not both.', hint)
  if (jobIds.length === 0 && all !== true) throw usage('No jobs were named.', hint)
}

async function isWanted(
  { screen }: Session,
  jobs: number,
  { yes }: BulkOptions,
  { question }: Command,
): Promise<boolean> {
  if (yes === true) return true
  const text = `${jobs === 1 ? 'One job' : `${jobs} jobs`} will ${question}.`
  if (!screen.isTerminal || !process.stdin.isTTY) throw usage(text, 'Confirm with --yes.')
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(?:es)?$/i.test((await lines.question(`${text} Go on? [y/N] `)).trim())
  } finally {
    lines.close()
  }
}

function report(screen: Screen, results: readonly BulkReply['results'][number][], command: Command): number {
  const refused = results.filter((one) => 'error' in one)
  const count = results.length - refused.length
  if (screen.isJson) printJson(screen, { results })
  else if (results.length === 0) screen.out('No matching jobs.')
  else if (count > 0) done(screen, `${count === 1 ? '1 job is' : `${count} jobs are`} ${command.done}.`)
  if (!screen.isJson) {
    for (const one of refused) screen.err(`${screen.paint('red', '✗')} ${one.jobId}: ${one.error}`)
  }
  return refused.length === 0 ? EXIT.ok : EXIT.failure
}

export interface EditOptions extends GlobalOptions {
  readonly data?: string
  readonly history?: string
}

/** Sends a job back with other data: those that are given, or what the person makes of the old ones in an editor. */
export function editQuarantined(given: string, options: EditOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const jobId = await jobIdOf(client, given)
    const job = client.job(jobId)
    const { data, history } = options
    if (data === '-' && history === '-') throw usage('Only one of --data and --history can come from standard input.')
    if (data !== undefined || history !== undefined) {
      const initialData = data === undefined ? undefined : await readData('--data', data)
      const stateHistory = history === undefined ? undefined : await readData('--history', history)
      await job.retry({ initialData, stateHistory })
      return done(screen, `Job ${jobId} was retried with changed data.`)
    }
    const { editJson } = await import('./editor.ts')
    const { initialData, stateHistory } = await job.quarantined()
    const edited = await editJson({ initial_data: initialData, state_history: stateHistory })
    if (edited === undefined) {
      screen.err('Nothing was changed, so the job stays in quarantine.')
      return EXIT.failure
    }
    await job.retry({ initialData: edited.initial_data, stateHistory: edited.state_history })
    return done(screen, `Job ${jobId} was retried with changed data.`)
  })
}
