import { Option } from 'commander'
import type { Command } from 'commander'
import { act } from './action.ts'
import type { End } from './action.ts'
import type { AgentOptions, AuditOptions, LimitOptions, PublishOptions, TokenOptions } from './agents.ts'
import { count, moment, number, spanMs } from './arguments.ts'
import type { ApplyOptions } from './automation-file.ts'
import type {
  AutomationListOptions,
  DefinitionOptions,
  PreviewAutomationOptions,
  RunNowOptions,
  SnoozeOptions,
} from './automations.ts'
import type { ReasonOptions, RerunCommandOptions, RunListOptions, RunStatsOptions } from './runs.ts'

const STATUSES = ['active', 'paused', 'canceled']
const RUN_STATUSES = ['running', 'succeeded', 'failed', 'canceled', 'quarantined']
const TRIGGERS = ['time', 'event', 'condition', 'webhook', 'manual', 'rerun']

function limited(command: Command, size = 20): Command {
  return command.addOption(new Option('--limit <number>', 'maximum number of results').argParser(count).default(size))
}

export function addAutomations(program: Command, end: End): void {
  const load = () => import('./automations.ts')
  const automations = program.command('automations').description('define and control automations')
  limited(automations.command('list', { isDefault: true }))
    .description('list automations, newest first')
    .addOption(new Option('--status <status>', 'only those that are so').choices(STATUSES))
    .option('--search <text>', 'only those with this text in their id or title')
    .option('--owner <client>', 'only those of this client (admins only)')
    .action(act(end, async (options: AutomationListOptions) => (await load()).listAutomations(options)))
  automations
    .command('show <automation>')
    .description('show one automation: when it runs next, and who changed it')
    .action(act(end, async (options, id) => (await load()).showAutomation(id, options)))
  defined(automations.command('create'))
    .description('create an automation')
    .action(act(end, async (options: DefinitionOptions) => (await load()).createAutomation(options)))
  defined(automations.command('edit <automation>'))
    .description('replace the definition of an automation')
    .action(act(end, async (options: DefinitionOptions, id: string) => (await load()).editAutomation(id, options)))
  automations
    .command('delete <automation>')
    .description('delete an automation that has no open runs')
    .action(act(end, async (options, id) => (await load()).deleteAutomation(id, options)))
  defined(automations.command('preview [automation]'))
    .description('show when an automation runs next, or when a definition would')
    .addOption(new Option('--count <number>', 'maximum number of times').argParser(count).default(5))
    .action(
      act(end, async (options: PreviewAutomationOptions, id: string | undefined) =>
        (await load()).previewAutomation(id, options),
      ),
    )
  addSteering(automations, end)
  addFileCommands(automations, end)
}

function defined(command: Command): Command {
  return command
    .option('--file <file>', 'definition in YAML or JSON')
    .option('--data <json>', 'definition as JSON, @file, or - for standard input')
}

function addSteering(automations: Command, end: End): void {
  const load = () => import('./automations.ts')
  automations
    .command('run <automation>')
    .description('run an automation now')
    .option('--params <json>', 'override single params: JSON, @file, or - for standard input')
    .action(act(end, async (options: RunNowOptions, id: string) => (await load()).runAutomation(id, options)))
  automations
    .command('budget <automation>')
    .description('show what an automation has used today, and what it may use')
    .action(act(end, async (options, id) => (await load()).showBudget(id, options)))
  automations
    .command('snooze <automation>')
    .description('delay the next run')
    .addOption(new Option('--for <span>', 'how long: 30m, 2h, 7d').argParser(spanMs).makeOptionMandatory())
    .option('--reason <text>', 'reason, recorded in the audit log')
    .action(
      act(end, async (options: SnoozeOptions & { readonly for: number }, id: string) =>
        (await load()).snoozeAutomation(id, options.for, options),
      ),
    )
  for (const [verb, description] of [
    ['pause', 'pause an automation'],
    ['resume', 'resume a paused automation'],
    ['cancel', 'end an automation permanently'],
  ] as const) {
    automations
      .command(`${verb} <automation>`)
      .description(description)
      .option('--reason <text>', 'reason, recorded in the audit log')
      .action(
        act(end, async (options: SnoozeOptions, id: string) => (await load()).commandAutomation(verb, id, options)),
      )
  }
}

function addFileCommands(automations: Command, end: End): void {
  const load = () => import('./automation-file.ts')
  automations
    .command('apply <file>')
    .description('create and update automations to match a file')
    .option('--dry-run', 'only show what would change')
    .option('--prune', 'delete automations that are not in the file')
    .action(act(end, async (options: ApplyOptions, file: string) => (await load()).applyFile(file, options)))
  automations
    .command('export')
    .description('print your automations as a file for apply')
    .action(act(end, async (options) => (await load()).exportFile(options)))
}

export function addRuns(program: Command, end: End): void {
  const load = () => import('./runs.ts')
  const runs = program.command('runs').description('runs of automations')
  limited(runs.command('list', { isDefault: true }))
    .description('list runs, newest first')
    .option('--automation <automation>', 'only runs of this automation')
    .addOption(new Option('--status <status>', 'only those that are so').choices(RUN_STATUSES))
    .addOption(new Option('--trigger <kind>', 'only those set off so').choices(TRIGGERS))
    .addOption(new Option('--since <time>', 'only runs begun since: 2h, 3d, or a date').argParser(moment))
    .addOption(new Option('--until <time>', 'only runs begun before').argParser(moment))
    .option('--owner <client>', 'only those of this client (admins only)')
    .action(act(end, async (options: RunListOptions) => (await load()).listRuns(options)))
  runs
    .command('show <run>')
    .description('show one run with its steps')
    .action(act(end, async (options, id) => (await load()).showRun(id, options)))
  runs
    .command('cancel <run>')
    .description('cancel a run')
    .option('--reason <text>', 'reason, recorded in the audit log')
    .action(act(end, async (options: ReasonOptions, id: string) => (await load()).cancelRun(id, options)))
  runs
    .command('rerun <run>')
    .description('repeat a run')
    .option('--from <step>', 'start at this step; earlier steps keep their outputs')
    .option('--params <json>', 'override single params: JSON, @file, or - for standard input')
    .action(act(end, async (options: RerunCommandOptions, id: string) => (await load()).rerunRun(id, options)))
  runs
    .command('stats')
    .description('count runs, their outcomes and their durations')
    .option('--automation <automation>', 'only runs of this automation')
    .addOption(new Option('--days <number>', 'of so many days').argParser(number).default(7))
    .option('--owner <client>', 'only those of this client (admins only)')
    .action(act(end, async (options: RunStatsOptions) => (await load()).showStatistics(options)))
}

export function addPublishedEvents(program: Command, end: End): void {
  const load = () => import('./agents.ts')
  const events = program.command('events').description('events for automations')
  limited(events.command('list', { isDefault: true }))
    .description('list published events, newest first')
    .option('--topic <topic>', 'only events of this topic')
    .option('--owner <client>', 'only those of this client (admins only)')
    .action(act(end, async (options: LimitOptions) => (await load()).listPublished(options)))
  events
    .command('publish <topic>')
    .description('publish an event to automations')
    .option('--data <json>', 'payload as JSON, @file, or - for standard input')
    .option('--key <key>', 'idempotency key: the same key is the same event')
    .action(act(end, async (options: PublishOptions, topic: string) => (await load()).publishEvent(topic, options)))
  events
    .command('show <event>')
    .description('show an event and the runs it started')
    .action(act(end, async (options, id) => (await load()).showPublished(id, options)))
}

export function addAgents(program: Command, end: End): void {
  const load = () => import('./agents.ts')
  const agents = program.command('agents').description('agents and their tokens (admins only)')
  limited(agents.command('list', { isDefault: true }))
    .description('list agents, newest first')
    .option('--search <text>', 'only those with this text in their id or name')
    .action(act(end, async (options: LimitOptions) => (await load()).listAgents(options)))
  agents
    .command('show <agent>')
    .description('show an agent and its tokens')
    .action(act(end, async (options, id) => (await load()).showAgent(id, options)))
  agentFields(agents.command('create <name>'))
    .description('create an agent')
    .action(act(end, async (options: AgentOptions, name: string) => (await load()).createAgent(name, options)))
  agentFields(agents.command('edit <agent>'))
    .description('change an agent')
    .option('--name <name>', 'new name')
    .option('--for-nobody', 'it no longer acts on behalf of anybody')
    .action(act(end, async (options: AgentOptions, id: string) => (await load()).editAgent(id, options)))
  agents
    .command('delete <agent>')
    .description('delete an agent, revoke its tokens and cancel its automations')
    .action(act(end, async (options, id) => (await load()).deleteAgent(id, options)))
  agents
    .command('token <agent> <name>')
    .description('create a token for an agent and print it once')
    .addOption(new Option('--expires <span>', 'valid for: 30d, 12h (default: 90d)').argParser(spanMs))
    .option('--forever', 'valid until it is revoked')
    .option('--on-behalf-of <person>', 'the person on whose behalf it acts')
    .action(
      act(end, async (options: TokenOptions, id: string, name: string) =>
        (await load()).createToken(id, name, options),
      ),
    )
  agents
    .command('revoke <agent> <token>')
    .description('revoke a token of an agent')
    .action(
      act(end, async (options: LimitOptions, id: string, token: string) =>
        (await load()).revokeToken(id, token, options),
      ),
    )
}

function agentFields(command: Command): Command {
  const each = (text: string, before: readonly string[]): readonly string[] => [...before, ...text.split(',')]
  return command
    .addOption(
      new Option('--scope <scope>', "a scope, such as runs:read or 'jobs:*'; can be repeated")
        .argParser(each)
        .default([]),
    )
    .option('--description <text>', 'description')
    .option('--on-behalf-of <person>', 'the person on whose behalf it acts')
    .option('--budget <json>', 'what it may use in a day, such as {"usd_per_day": 5}: JSON, @file, or -')
}

export function addToolsAndAudit(program: Command, end: End): void {
  const load = () => import('./agents.ts')
  const tools = program.command('tools').description('tools that steps of automations can use')
  tools
    .command('list', { isDefault: true })
    .description('list the tools')
    .action(act(end, async (options) => (await load()).listTools(options)))
  tools
    .command('show <tool>')
    .description('show a tool with the schemas of its input and output')
    .action(act(end, async (options, name) => (await load()).showTool(name, options)))
  const audit = program.command('audit').description('who changed what, and what did not run')
  audited(limited(audit.command('list', { isDefault: true }), 50))
    .description('list entries, newest first')
    .action(act(end, async (options: AuditOptions) => (await load()).listAudit(options)))
  audited(audit.command('export'))
    .description('print all entries, one JSON object on each line')
    .action(act(end, async (options: AuditOptions) => (await load()).exportAudit(options)))
}

function audited(command: Command): Command {
  return command
    .option('--subject <id>', 'only entries about this automation or agent')
    .option('--actor <client>', 'only what this client or agent did')
    .addOption(new Option('--since <time>', 'only entries since: 2h, 3d, or a date').argParser(moment))
    .addOption(new Option('--until <time>', 'only entries before: 2h, 3d, or a date').argParser(moment))
    .option('--action <action>', 'only this action, such as automation.paused or run.skipped')
    .option('--owner <client>', 'only those of this client (admins only)')
}
