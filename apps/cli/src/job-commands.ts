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
  const jobs = program.command('jobs').description('start, watch and steer jobs')
  addViews(jobs, end)
  addSteering(jobs, end)
  program
    .command('explain <job>')
    .description('why the tasks of a job are where they are')
    .action(act(end, async (options, job) => (await import('./listings.ts')).explainJob(job, options)))
}

function addViews(jobs: Command, end: End): void {
  const load = () => import('./jobs.ts')
  jobs
    .command('list', { isDefault: true })
    .description('list jobs, the newest first')
    .option('--status <status>', 'only these, separated by commas')
    .option('--blueprint <name>', 'only jobs of this blueprint')
    .option('--search <text>', 'only jobs with this in their id, blueprint, state, error or metadata')
    .addOption(new Option('--since <time>', 'only jobs from then on: 2h, 3d, or a date').argParser(moment))
    .addOption(new Option('--until <time>', 'only jobs before then').argParser(moment))
    .option('--owner <client>', 'only jobs of this client, for admins')
    .addOption(new Option('--limit <number>', 'at most so many').argParser(count).default(20))
    .action(act(end, async (options: ListOptions) => (await load()).listJobs(options)))
  jobs
    .command('show <job>')
    .description('all about one job')
    .action(act(end, async (options, job) => (await load()).showJob(job, options)))
  jobs
    .command('history <job>')
    .description('what has happened to a job, the oldest first')
    .addOption(new Option('--limit <number>', 'at most so many events').argParser(count))
    .action(
      act(end, async (options: HistoryOptions, job) => (await import('./job-history.ts')).showHistory(job, options)),
    )
  jobs
    .command('watch <job>')
    .description('follow a job to its end (ends with 0 if it finished, 3 if not)')
    .action(act(end, async (options, job) => (await load()).watchJob(job, options)))
}

function addSteering(jobs: Command, end: End): void {
  const load = () => import('./jobs.ts')
  jobs
    .command('start <blueprint>')
    .description('start a job')
    .option('--data <json>', 'initial data as JSON, @file, or - for standard input')
    .option('--key <key>', 'idempotency key: the same key gives the same job')
    .addOption(new Option('--priority <number>', 'higher goes first').argParser(number))
    .option('--metadata <json>', 'facts that stay with it and can be searched for: JSON, @file, or -')
    .option('--webhook <url>', 'where to tell what becomes of it')
    .option('--watch', 'follow it to its end')
    .action(act(end, async (options, blueprint) => (await load()).startJob(blueprint, options)))
  jobs
    .command('approve <job> [decision]')
    .description('answer a job that waits for a person; without a decision, see what it asks')
    .option('--comment <text>', 'why')
    .addOption(new Option('--visit <number>', 'only if it still asks this question').argParser(number))
    .action(
      act(end, async (options: ApproveOptions, job: string, decision: string | undefined) =>
        (await import('./approvals.ts')).approveJob(job, decision, options),
      ),
    )
  jobs
    .command('send <job> <topic>')
    .description('send a job an event that it waits for, now or later')
    .option('--data <json>', 'what the event brings: JSON, @file, or - for standard input')
    .option('--id <id>', 'the same id is the same event, however often it is sent')
    .action(
      act(end, async (options: SendOptions, job: string, topic: string) =>
        (await import('./sent-events.ts')).sendToJob(job, topic, options),
      ),
    )
  jobs
    .command('publish <topic>')
    .description('send an event to all jobs that wait for it by a key')
    .requiredOption('--key <key>', 'reaches the jobs that wait for this key')
    .option('--data <json>', 'what the event brings: JSON, @file, or - for standard input')
    .option('--id <id>', 'the same id is the same event, however often it is sent')
    .action(
      act(end, async (options: PublishOptions, topic: string) =>
        (await import('./sent-events.ts')).publishEvent(topic, options),
      ),
    )
  jobs
    .command('cancel <job>')
    .description('end a job now')
    .option('--reason <text>', 'why')
    .action(act(end, async (options, job) => (await load()).cancelJob(job, options)))
  jobs
    .command('retry <job>')
    .description('let a quarantined job try again')
    .option('--data <json>', 'with other initial data: JSON, @file, or - for standard input')
    .action(act(end, async (options, job) => (await load()).retryJob(job, options)))
  jobs
    .command('discard <job>')
    .description('give up a quarantined job')
    .action(act(end, async (options, job) => (await load()).discardJob(job, options)))
}

export function addQuarantine(program: Command, end: End): void {
  const load = () => import('./quarantine.ts')
  const quarantine = program.command('quarantine').description('jobs that failed and wait for somebody to look')
  filtered(quarantine.command('list', { isDefault: true }))
    .description('list them, the newest first')
    .action(act(end, async (options: FilterOptions) => (await load()).listQuarantine(options)))
  quarantine
    .command('show <job>')
    .description('one with its whole error and its data')
    .action(act(end, async (options, job) => (await load()).showQuarantined(job, options)))
  selecting(quarantine.command('retry [jobs...]'))
    .description('send jobs back into the states where they failed')
    .action(
      act(end, async (options: BulkOptions, jobs: readonly string[]) => (await load()).retryQuarantined(jobs, options)),
    )
  quarantine
    .command('edit <job>')
    .description('send a job back with other data; without options, in the editor that EDITOR names')
    .option('--data <json>', 'other initial data: JSON, @file, or - for standard input')
    .option('--history <json>', 'other state history, given alike')
    .action(act(end, async (options: EditOptions, job) => (await load()).editQuarantined(job, options)))
  selecting(quarantine.command('discard [jobs...]'))
    .description('give jobs up: they end as failed')
    .action(
      act(end, async (options: BulkOptions, jobs: readonly string[]) =>
        (await load()).discardQuarantined(jobs, options),
      ),
    )
}

function filtered(command: Command): Command {
  return command
    .option('--blueprint <name>', 'only jobs of this blueprint')
    .option('--code <code>', 'only jobs with this error')
    .addOption(new Option('--older-than <span>', 'only those there for so long: 30m, 2h, 7d').argParser(spanMs))
    .option('--owner <client>', 'only jobs of this client, for admins')
    .addOption(new Option('--limit <number>', 'at most so many').argParser(count))
}

function selecting(command: Command): Command {
  return filtered(command.option('--all', 'all that fit, instead of naming them')).option(
    '--yes',
    'without asking back',
  )
}
