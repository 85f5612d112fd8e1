import { Option } from 'commander'
import type { Command } from 'commander'
import { act } from './action.ts'
import type { End } from './action.ts'
import type { ApproveOptions } from './approvals.ts'
import { count, moment, number, spanMs } from './arguments.ts'
import type { HistoryOptions } from './job-history.ts'
import type { ListOptions } from './jobs.ts'
import type { PublishOptions, SendOptions } from './sent-events.ts'
import type { BulkOptions, EditOptions, FilterOptions } from './quarantine.ts'

export function addJobs(program: Command, end: End): void {
  const jobs = program.command('jobs').description('start, watch and control jobs')
  addViews(jobs, end)
  addSteering(jobs, end)
  program
    .command('explain <job>')
    .description('explain which workers can or cannot take the tasks of a job, and why')
    .action(act(end, async (options, job) => (await import('./listings.ts')).explainJob(job, options)))
}

function addViews(jobs: Command, end: End): void {
  const load = () => import('./jobs.ts')
  jobs
    .command('list', { isDefault: true })
    .description('list jobs, newest first')
    .option('--status <status>', 'only these statuses, separated by commas')
    .option('--blueprint <name>', 'only jobs of this blueprint')
    .option('--search <text>', 'only jobs with this text in their id, blueprint, state, error or metadata')
    .addOption(new Option('--since <time>', 'only jobs created since: 2h, 3d, or a date').argParser(moment))
    .addOption(new Option('--until <time>', 'only jobs created before').argParser(moment))
    .option('--owner <client>', 'only jobs of this client (admins only)')
    .addOption(new Option('--limit <number>', 'maximum number of results').argParser(count).default(20))
    .action(act(end, async (options: ListOptions) => (await load()).listJobs(options)))
  jobs
    .command('show <job>')
    .description('show one job')
    .action(act(end, async (options, job) => (await load()).showJob(job, options)))
  jobs
    .command('history <job>')
    .description('show the history of a job, oldest first')
    .addOption(new Option('--limit <number>', 'maximum number of events').argParser(count))
    .action(
      act(end, async (options: HistoryOptions, job) => (await import('./job-history.ts')).showHistory(job, options)),
    )
  jobs
    .command('log <job>')
    .description('show what handlers and workers wrote about a job')
    .action(act(end, async (options, job) => (await import('./job-history.ts')).showLog(job, options)))
  jobs
    .command('watch <job>')
    .description('follow a job until it ends (exit code 0 if it finished, 3 if not, 4 after --timeout)')
    .addOption(watchTimeout())
    .action(act(end, async (options, job) => (await load()).watchJob(job, options)))
}

function watchTimeout(): Option {
  return new Option('--timeout <span>', 'stop following after this time, such as 90s or 10m').argParser(spanMs)
}

function addSteering(jobs: Command, end: End): void {
  const load = () => import('./jobs.ts')
  jobs
    .command('start <blueprint>')
    .description('start a job')
    .option('--data <json>', 'initial data as JSON, @file, or - for standard input')
    .option('--key <key>', 'idempotency key: the same key gives the same job')
    .addOption(new Option('--priority <number>', 'priority; higher runs first').argParser(number))
    .option('--metadata <json>', 'searchable metadata as JSON, @file, or - for standard input')
    .option('--webhook <url>', 'URL to notify about the job')
    .option('--watch', 'follow the job until it ends')
    .addOption(watchTimeout())
    .action(act(end, async (options, blueprint) => (await load()).startJob(blueprint, options)))
  jobs
    .command('approve <job> [decision]')
    .description('answer the question of a job; without a decision, show the question')
    .option('--comment <text>', 'reason for the decision')
    .option('--data <json>', 'what the form of the question asks for: JSON, @file, or - for standard input')
    .addOption(new Option('--visit <number>', 'only if this question is still open').argParser(number))
    .action(
      act(end, async (options: ApproveOptions, job: string, decision: string | undefined) =>
        (await import('./approvals.ts')).approveJob(job, decision, options),
      ),
    )
  jobs
    .command('send <job> <topic>')
    .description('send an event to a job')
    .option('--data <json>', 'payload as JSON, @file, or - for standard input')
    .option('--id <id>', 'event id: events with the same id count once')
    .action(
      act(end, async (options: SendOptions, job: string, topic: string) =>
        (await import('./sent-events.ts')).sendToJob(job, topic, options),
      ),
    )
  jobs
    .command('publish <topic>')
    .description('send an event to all jobs that wait for it by a key')
    .requiredOption('--key <key>', 'reaches the jobs that wait for this key')
    .option('--data <json>', 'payload as JSON, @file, or - for standard input')
    .option('--id <id>', 'event id: events with the same id count once')
    .action(
      act(end, async (options: PublishOptions, topic: string) =>
        (await import('./sent-events.ts')).publishEvent(topic, options),
      ),
    )
  jobs
    .command('cancel <job>')
    .description('cancel a job')
    .option('--reason <text>', 'reason for the cancellation')
    .action(act(end, async (options, job) => (await load()).cancelJob(job, options)))
  jobs
    .command('retry <job>')
    .description('retry a quarantined job, or run any job again from a state')
    .option('--to <state>', 'start a new job with the data of this one, in this state; the old job stays as it is')
    .option('--data <json>', 'new initial data as JSON, @file, or - for standard input')
    .action(act(end, async (options, job) => (await load()).retryJob(job, options)))
  jobs
    .command('discard <job>')
    .description('discard a quarantined job')
    .action(act(end, async (options, job) => (await load()).discardJob(job, options)))
}

export function addQuarantine(program: Command, end: End): void {
  const load = () => import('./quarantine.ts')
  const quarantine = program.command('quarantine').description('jobs that failed and wait for an operator')
  filtered(quarantine.command('list', { isDefault: true }))
    .description('list quarantined jobs, newest first')
    .action(act(end, async (options: FilterOptions) => (await load()).listQuarantine(options)))
  quarantine
    .command('show <job>')
    .description('show one job with its full error and data')
    .action(act(end, async (options, job) => (await load()).showQuarantined(job, options)))
  selecting(quarantine.command('retry [jobs...]'))
    .description('retry jobs in the states where they failed')
    .action(
      act(end, async (options: BulkOptions, jobs: readonly string[]) => (await load()).retryQuarantined(jobs, options)),
    )
  quarantine
    .command('edit <job>')
    .description('retry a job with changed data; without options, opens the editor named in EDITOR')
    .option('--data <json>', 'new initial data as JSON, @file, or - for standard input')
    .option('--history <json>', 'new state history as JSON, @file, or - for standard input')
    .action(act(end, async (options: EditOptions, job) => (await load()).editQuarantined(job, options)))
  selecting(quarantine.command('discard [jobs...]'))
    .description('discard jobs: they end as failed')
    .action(
      act(end, async (options: BulkOptions, jobs: readonly string[]) =>
        (await load()).discardQuarantined(jobs, options),
      ),
    )
}

function filtered(command: Command): Command {
  return command
    .option('--blueprint <name>', 'only jobs of this blueprint')
    .option('--code <code>', 'only jobs with this error code')
    .addOption(new Option('--older-than <span>', 'only jobs quarantined for at least: 30m, 2h, 7d').argParser(spanMs))
    .option('--owner <client>', 'only jobs of this client (admins only)')
    .addOption(new Option('--limit <number>', 'maximum number of results').argParser(count))
}

function selecting(command: Command): Command {
  return filtered(command.option('--all', 'all matching jobs, instead of a list of ids')).option(
    '--yes',
    'do not ask for confirmation',
  )
}
