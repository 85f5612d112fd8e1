import { readFile } from 'node:fs/promises'
import type { Automation, AutomationBudget, AutomationDefinition, TimePreview } from '@impresario/client'
import { parse } from 'yaml'
import { dataObject, readData, whyUnread, withNumbers, YAML_RULES } from './arguments.ts'
import { COMMAND, EXIT, usage } from './failure.ts'
import { automationIdOf } from './job-prefix.ts'
import { paintStatus, printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { done, withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { facts, table } from './table.ts'
import { ago, localTime, nowSeconds, span, until } from './time.ts'

export interface AutomationListOptions extends GlobalOptions {
  readonly status?: 'active' | 'paused' | 'canceled'
  readonly search?: string
  readonly owner?: string
  readonly limit: number
}

const PAGE = 100

export function listAutomations(options: AutomationListOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { status, search, owner, limit } = options
    const found = await client.automations.list({ status, search, owner, limit: Math.min(limit, PAGE) }).all(limit)
    if (screen.isJson) printJson(screen, found)
    else screen.out(found.length === 0 ? 'There are no such automations.' : automationTable(screen, found))
    return EXIT.ok
  })
}

function automationTable(screen: Screen, automations: readonly Automation[]): string {
  const now = nowSeconds()
  return table(screen, automations, [
    { title: 'automation', cell: (one) => one.id },
    { title: 'title', cell: (one) => one.title },
    { title: 'status', cell: (one) => paintStatus(screen, one.status) },
    { title: 'when', cell: (one) => one.when.join('; ') },
    { title: 'next', cell: (one) => (one.nextRunAt === null ? '–' : until(one.nextRunAt, now)) },
  ])
}

export function showAutomation(id: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) =>
    show(screen, await client.automations.get(await automationIdOf(client, id))),
  )
}

function show(screen: Screen, automation: Automation): number {
  if (screen.isJson) printJson(screen, automation)
  else screen.out(automationFacts(screen, automation))
  return EXIT.ok
}

function automationFacts(screen: Screen, one: Automation): string {
  const now = nowSeconds()
  const { nextRunAt, snoozed } = one
  const why = snoozed?.reason === null || snoozed?.reason === undefined ? '' : `: ${snoozed.reason}`
  return facts(screen, [
    ['automation', one.id],
    ['title', one.title],
    ['status', paintStatus(screen, one.status)],
    ['owner', one.owner],
    ['when', one.when.join('; ')],
    ['next run', nextRunAt === null ? 'none by the clock' : `${localTime(nextRunAt)} (${until(nextRunAt, now)})`],
    ['snoozed', snoozed === null ? undefined : `until ${localTime(snoozed.until)} by ${snoozed.by}${why}`],
    ['steps', stepNames(one)],
    ['revision', String(one.revision)],
    ['changed', `${ago(one.updatedAt, now)} by ${one.updatedBy}`],
  ])
}

function stepNames({ definition }: Automation): string {
  const { pipeline } = definition
  const steps = Array.isArray(pipeline) ? pipeline : []
  const name = (step: unknown, at: number): string => {
    const { id } = dataObject(step)
    return typeof id === 'string' ? id : String(at + 1)
  }
  return steps.map(name).join(' → ')
}

export interface DefinitionOptions extends GlobalOptions {
  readonly file?: string
  readonly data?: string
}

export function createAutomation(options: DefinitionOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const automation = await client.automations.create(await definitionOf(options))
    if (screen.isJson) return show(screen, automation)
    done(screen, `Created automation "${automation.title}": ${automation.id}`)
    warn(screen, automation.warnings)
    if (automation.nextRunAt !== null) screen.out(`It runs next ${until(automation.nextRunAt, nowSeconds())}.`)
    return EXIT.ok
  })
}

export function editAutomation(id: string, options: DefinitionOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const automation = await client.automations.update(await automationIdOf(client, id), await definitionOf(options))
    if (screen.isJson) return show(screen, automation)
    warn(screen, automation.warnings)
    return done(screen, `${automation.title} is changed; this is revision ${automation.revision}.`)
  })
}

/** What is valid and yet perhaps not meant. */
export function warn(screen: Screen, warnings: readonly string[] = []): void {
  for (const text of warnings) screen.err(`${screen.paint('yellow', 'warning')}: ${text}`)
}

/** JSON from the command line, or a file in YAML or JSON. */
async function definitionOf({ file, data }: DefinitionOptions): Promise<AutomationDefinition> {
  if ((file === undefined) === (data === undefined)) {
    throw usage(
      'Give the definition with --file or with --data.',
      `Such as ${COMMAND} automations create --file a.yaml.`,
    )
  }
  const given = data === undefined ? readYaml(file ?? '', await readText(file ?? '')) : await readData('--data', data)
  return asDefinition(given)
}

/** Boundary: the server checks it and names every problem. */
function asDefinition(given: object): AutomationDefinition {
  return given as AutomationDefinition
}

export async function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw usage(`"${file}" cannot be read: ${whyUnread(error)}.`)
  })
}

function readYaml(file: string, text: string): object {
  try {
    return dataObject(withNumbers(parse(text, YAML_RULES)))
  } catch (error) {
    throw usage(`"${file}" is not a definition: ${error instanceof Error ? error.message : String(error)}`)
  }
}

export function deleteAutomation(id: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const whole = await automationIdOf(client, id)
    await client.automations.delete(whole)
    return done(screen, `${whole} is deleted. Its runs and its audit log stay.`, { id: whole, status: 'deleted' })
  })
}

export interface RunNowOptions extends GlobalOptions {
  readonly params?: string
}

export function runAutomation(id: string, options: RunNowOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const params = options.params === undefined ? undefined : await readData('--params', options.params)
    const launched = await client.automations.run(await automationIdOf(client, id), params)
    if (screen.isJson) printJson(screen, launched)
    else if (launched.status === 'skipped') screen.out(`Not run: ${launched.reason ?? 'skipped'}.`)
    else done(screen, `${launched.status === 'waiting' ? 'Queued' : 'Started'} run ${launched.runId}`)
    return EXIT.ok
  })
}

export function showBudget(id: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const budget = await client.automations.budget(id)
    if (screen.isJson) printJson(screen, budget)
    else screen.out(budgetText(screen, budget))
    return EXIT.ok
  })
}

function budgetText(screen: Screen, { agent, ...own }: AutomationBudget): string {
  const rows = (['runs', 'usd', 'tokens', 'seconds'] as const).map((name) => ({
    name,
    ...own[name],
    ofAgent: agent?.[name],
  }))
  const amount = (value: number | null | undefined): string =>
    value === null || value === undefined ? '–' : String(value)
  const text = table(screen, rows, [
    { title: own.period, cell: ({ name }) => name },
    { title: 'used', cell: ({ used }) => amount(used), align: 'right' },
    { title: 'limit', cell: ({ limit }) => amount(limit), align: 'right' },
    ...(agent === null
      ? []
      : [
          {
            title: 'used by agent',
            cell: ({ ofAgent }: (typeof rows)[number]) => amount(ofAgent?.used),
            align: 'right',
          } as const,
          {
            title: 'limit of agent',
            cell: ({ ofAgent }: (typeof rows)[number]) => amount(ofAgent?.limit),
            align: 'right',
          } as const,
        ]),
  ])
  return text
}

export interface SnoozeOptions extends GlobalOptions {
  readonly reason?: string
}

export function snoozeAutomation(id: string, ms: number, options: SnoozeOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const automation = await client.automations.snooze(await automationIdOf(client, id), ms / 1_000, options.reason)
    if (screen.isJson) return show(screen, automation)
    return done(
      screen,
      `The next run is put off by ${span(ms / 1_000)}, until ${localTime(automation.nextRunAt ?? 0)}.`,
    )
  })
}

type Verb = 'pause' | 'resume' | 'cancel'
const DONE: Readonly<Record<Verb, string>> = {
  pause: 'is paused',
  resume: 'goes on',
  cancel: 'is canceled for good',
}

export function commandAutomation(verb: Verb, id: string, options: SnoozeOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { automations } = client
    const whole = await automationIdOf(client, id)
    const automation =
      verb === 'cancel' ? await automations.cancel(whole, options.reason) : await automations[verb](whole)
    return screen.isJson ? show(screen, automation) : done(screen, `${automation.title} ${DONE[verb]}.`)
  })
}

export interface PreviewAutomationOptions extends DefinitionOptions {
  readonly count: number
}

/** Of one that exists, or of a file. */
export function previewAutomation(id: string | undefined, options: PreviewAutomationOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const preview = await client.automations.preview(
      id === undefined ? await definitionOf(options) : await automationIdOf(client, id),
      options.count,
    )
    if (screen.isJson) printJson(screen, preview)
    else screen.out(previewText(screen, preview))
    return EXIT.ok
  })
}

function previewText(screen: Screen, { words, firings, leftOut, isComplete }: TimePreview): string {
  if (words.length === 0) return 'It does not run by the clock.'
  const times = firings.map(({ local, notes }) => [local, ...notes.map((note) => screen.paint('dim', note))].join('  '))
  const skipped = leftOut.map(({ local, reason }) => screen.paint('dim', `${local}  left out: ${reason}`))
  const end = isComplete ? [screen.paint('dim', 'These are all.')] : []
  return [...words, ...times, ...skipped, ...end].join('\n')
}
