import { stringifyExact } from '@impresario/client'
import type { ListedRun, Run, RunQuery, RunStatistics, RunStep } from '@impresario/client'
import { readData } from './arguments.ts'
import { EXIT } from './failure.ts'
import { paintStatus, printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { done, withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { facts, table } from './table.ts'
import { ago, localTime, nowSeconds, span } from './time.ts'

export interface RunListOptions extends GlobalOptions {
  readonly automation?: string
  readonly status?: NonNullable<RunQuery['status']>
  readonly trigger?: NonNullable<RunQuery['trigger']>
  readonly since?: Date
  readonly until?: Date
  readonly owner?: string
  readonly limit: number
}

const PAGE = 100

export function listRuns(options: RunListOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { automation: automationId, status, trigger, since, until, owner, limit } = options
    const query = { automationId, status, trigger, owner, createdAfter: since, createdBefore: until }
    const runs = await client.runs.list({ ...query, limit: Math.min(limit, PAGE) }).all(limit)
    if (screen.isJson) printJson(screen, runs)
    else screen.out(runs.length === 0 ? 'There are no such runs.' : runTable(screen, runs))
    return EXIT.ok
  })
}

function runTable(screen: Screen, runs: readonly ListedRun[]): string {
  const now = nowSeconds()
  return table(screen, runs, [
    { title: 'run', cell: (run) => run.id },
    { title: 'automation', cell: (run) => run.title },
    { title: 'status', cell: (run) => paintStatus(screen, run.status) },
    { title: 'by', cell: (run) => run.trigger.kind },
    { title: 'started', cell: (run) => ago(run.createdAt, now) },
    { title: 'took', cell: (run) => (run.endedAt === null ? '' : span(run.endedAt - run.createdAt)), align: 'right' },
    { title: 'error', cell: (run) => run.error?.message ?? '' },
  ])
}

export function showRun(id: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const run = await client.runs.get(id)
    if (screen.isJson) printJson(screen, run)
    else screen.out(runText(screen, run))
    return EXIT.ok
  })
}

function runText(screen: Screen, run: Run): string {
  const head = facts(screen, [
    ['run', run.id],
    ['automation', `${run.title} (${run.automationId})`],
    ['status', paintStatus(screen, run.status)],
    ['trigger', run.trigger.kind],
    ['started', localTime(run.createdAt)],
    ['took', run.endedAt === null ? undefined : span(run.endedAt - run.createdAt)],
    ['attempt', run.attempt === 1 ? undefined : String(run.attempt)],
    ['used', usageText(run.usage)],
    ['error', run.error === null ? undefined : `${run.error.code}: ${run.error.message}`],
  ])
  const steps = table(screen, run.steps, [
    { title: 'step', cell: (step) => step.id },
    { title: 'status', cell: (step) => paintStatus(screen, step.status) },
    { title: 'attempts', cell: (step) => String(step.attempts), align: 'right' },
    { title: 'error', cell: (step) => step.error?.message ?? '' },
  ])
  return run.steps.length === 0
    ? head
    : [head, steps, ...run.steps.flatMap((step) => stepData(screen, step))].join('\n\n')
}

/** Longer values are cut: `--json` has them whole. */
const DATA_CHARS_MAX = 2_000

/** What a step got and gave. */
function stepData(screen: Screen, step: RunStep): readonly string[] {
  const parts = (['input', 'output'] as const).flatMap((name) => {
    const value = step[name]
    if (value === undefined || value === null || stringifyExact(value) === '{}') return []
    const text = stringifyExact(value, 2)
    const shown = text.length > DATA_CHARS_MAX ? `${text.slice(0, DATA_CHARS_MAX)}… (--json shows all of it)` : text
    return [`${screen.paint('bold', `${step.id}: ${name}`)}\n${shown}`]
  })
  return parts
}

function usageText({ usd, tokens, seconds }: Run['usage']): string | undefined {
  const parts = [
    ...(usd === 0 ? [] : [`$${usd}`]),
    ...(tokens === 0 ? [] : [`${tokens} tokens`]),
    ...(seconds === 0 ? [] : [`${seconds} s`]),
  ]
  return parts.length === 0 ? undefined : parts.join(', ')
}

export interface ReasonOptions extends GlobalOptions {
  readonly reason?: string
}

export function cancelRun(id: string, options: ReasonOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    await client.runs.cancel(id, options.reason)
    return done(screen, `${id} is canceled.`, { id, status: 'canceled' })
  })
}

export interface RerunCommandOptions extends GlobalOptions {
  readonly from?: string
  readonly params?: string
}

export function rerunRun(id: string, options: RerunCommandOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const params = options.params === undefined ? undefined : await readData('--params', options.params)
    const launched = await client.runs.rerun(id, { from: options.from, params })
    return done(screen, `Started run ${launched.runId ?? launched.status}`, launched)
  })
}

export interface RunStatsOptions extends GlobalOptions {
  readonly automation?: string
  readonly days: number
  readonly owner?: string
}

export function showStatistics(options: RunStatsOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { automation: automationId, days, owner } = options
    const found = await client.runs.statistics({ automationId, days, owner })
    if (screen.isJson) printJson(screen, found)
    else screen.out(statisticsText(screen, found, days))
    return EXIT.ok
  })
}

function statisticsText(screen: Screen, found: RunStatistics, days: number): string {
  const { durationSeconds: took, successRate, byStatus } = found
  const kinds = Object.entries(byStatus).filter(([, count]) => count > 0)
  const when = (at: number | null): string | undefined => (at === null ? undefined : localTime(at))
  return facts(screen, [
    ['runs', `${found.total} in ${days} d${found.isPartial ? ', and more' : ''}`],
    ['automations', String(found.automations)],
    ...kinds.map(([status, count]) => [status, String(count)] as const),
    ['success', successRate === null ? undefined : `${(successRate * 100).toFixed(1)} %`],
    ['took', took === null ? undefined : `${span(took.p50)} (median), ${span(took.p95)} (95 %)`],
    ['last run', when(found.lastRunAt)],
    ['last success', when(found.lastSuccessAt)],
    ['last failure', when(found.lastFailureAt)],
  ])
}
