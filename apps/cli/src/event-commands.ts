import { Option } from 'commander'
import type { Command } from 'commander'
import { act } from './action.ts'
import type { End } from './action.ts'
import { count, moment } from './arguments.ts'
import type { DurationOptions, EventCountOptions, EventListOptions } from './events.ts'

export function addHistory(program: Command, end: End): void {
  const load = () => import('./events.ts')
  const history = program.command('history').description('events of all jobs and workers')
  filtered(history.command('list', { isDefault: true }))
    .description('list events, newest first')
    .addOption(new Option('--limit <number>', 'maximum number of results').argParser(count).default(50))
    .action(act(end, async (options: EventListOptions) => (await load()).listEvents(options)))
  filtered(history.command('counts'))
    .description('count events by name, over the last day or since --since')
    .addOption(new Option('--per <span>', 'count per hour or per day').choices(['hour', 'day']))
    .action(act(end, async (options: EventCountOptions) => (await load()).countEvents(options)))
  history
    .command('durations')
    .description('show how long jobs and their states took, over the last hour or since --since')
    .option('--blueprint <name>', 'only jobs of this blueprint')
    .option('--owner <client>', 'only jobs of this client (admins only)')
    .addOption(new Option('--since <time>', 'only what ended since: 2h, 3d, or a date').argParser(moment))
    .addOption(new Option('--until <time>', 'only what ended before').argParser(moment))
    .action(act(end, async (options: DurationOptions) => (await load()).showDurations(options)))
}

function filtered(command: Command): Command {
  return command
    .option('--event <event>', 'only these events, separated by commas: job_finished,job_failed')
    .option('--job <job>', 'only events of this job')
    .option('--worker <worker>', 'only events that name this worker')
    .option('--blueprint <name>', 'only events of jobs of this blueprint')
    .option('--owner <client>', 'only events of jobs of this client (admins only)')
    .addOption(new Option('--since <time>', 'only events since: 2h, 3d, or a date').argParser(moment))
    .addOption(new Option('--until <time>', 'only events before').argParser(moment))
}
