import { Option } from 'commander'
import type { Command } from 'commander'
import { act } from './action.ts'
import type { End } from './action.ts'
import { count, number, port, spanMs } from './arguments.ts'
import type { DevOptions } from './dev.ts'
import type { MigrateCommandOptions } from './migrate.ts'
import type { RunOptions } from './schedules.ts'
import type { DeliveryOptions, RotateOptions } from './webhooks.ts'
import type { WorkerHistoryOptions } from './worker-history.ts'

export function addServers(program: Command, end: End): void {
  program
    .command('start')
    .description('run a server, configured by the environment and impresario.toml')
    .action(act(end, async (options) => (await import('./start.ts')).start(options)))
  program
    .command('dev')
    .description('run everything on this machine, with a demo unless BLUEPRINTS_DIR is set')
    .addOption(new Option('--port <port>', 'port to listen on; the next free one if it is taken').argParser(port))
    .option('--data <directory>', 'where everything is kept', './impresario-data')
    .option('--blueprints <directory>', 'blueprints to run, watched for changes (or BLUEPRINTS_DIR)')
    .option('--no-type-check', 'do not check the types of the blueprints after each change')
    .option('--interactive', 'let the demo wait for your approval')
    .addOption(new Option('--approve-after <seconds>', 'the demo approves by itself').argParser(number).default(3))
    .action(act(end, async (options: DevOptions) => (await import('./dev.ts')).dev(options)))
}

const MIGRATE_HELP = `
Storages are named as in STORAGE_URL: file:<directory>, redis://…, postgres://…; env:NAME takes the address from the
environment, where other users of the machine do not see its password. Stop all orchestrators first. What was cut short goes
on when the same command is run again. See docs/guide/transfer.md.

  impresario migrate file:./impresario-data redis://localhost:6379
  impresario migrate env:STORAGE_URL postgres://me@db/impresario --dry-run
  impresario migrate --unmark file:./impresario-data`

/** Moving from one storage to another. */
export function addMigrate(program: Command, end: End): void {
  program
    .command('migrate <from> [to]')
    .description('move everything from one storage to another, checked by counts and checksums')
    .option('--dry-run', 'count what is in both, and change nothing')
    .option('--keep-source', 'leave the source as it was, so that it can be used on: a copy')
    .option('--restart', 'throw away what an unfinished transfer has left in the target, and copy everything anew')
    .option('--force', 'do not look whether orchestrators are at work')
    .option('--unmark', 'take the mark of a transfer from a storage, so that orchestrators start on it again')
    .addOption(new Option('--page <entries>', 'at most so many at a time').argParser(count).default(1_000))
    .addHelpText('after', MIGRATE_HELP)
    .action(
      act(end, async (options: MigrateCommandOptions, from: string, to: string | undefined) =>
        (await import('./migrate.ts')).runMigrate({ from, to }, options),
      ),
    )
}

/** What there is beside jobs. */
export function addCatalogue(program: Command, end: End): void {
  const load = () => import('./listings.ts')
  const workers = program.command('workers').description('who is here to work')
  workers
    .command('list', { isDefault: true })
    .description('list the workers')
    .action(act(end, async (options) => (await load()).listWorkers(options)))
  workers
    .command('show <worker>')
    .description('all about one worker')
    .action(act(end, async (options, worker) => (await load()).showWorker(worker, options)))
  workers
    .command('history <worker>')
    .description('what has happened to a worker, the newest first')
    .addOption(new Option('--limit <number>', 'at most so many events').argParser(count).default(50))
    .action(
      act(end, async (options: WorkerHistoryOptions, worker) =>
        (await import('./worker-history.ts')).showWorkerHistory(worker, options),
      ),
    )
  program
    .command('skills')
    .description('what the workers can do')
    .action(act(end, async (options) => (await load()).listSkills(options)))
  addBlueprints(program.command('blueprint').description('look at blueprints'), end)
}

function addBlueprints(blueprint: Command, end: End): void {
  const load = () => import('./listings.ts')
  blueprint
    .command('list', { isDefault: true })
    .description('list the blueprints of the server')
    .action(act(end, async (options) => (await load()).listBlueprints(options)))
  blueprint
    .command('show <name>')
    .description('its states and where they lead')
    .addOption(new Option('--blueprint-version <number>', 'this version instead of the latest').argParser(count))
    .action(act(end, async (options, name) => (await load()).showBlueprint(name, options)))
  blueprint
    .command('graph <file-or-name>')
    .description('draw a blueprint: from its file, or by its name on the server')
    .addOption(new Option('--format <format>', 'dot or svg').choices(['dot', 'svg']))
    .option('-o, --output <file>', 'write it there')
    .option('--name <blueprint>', 'which one, if the file has several')
    .action(act(end, async (options, source) => (await import('./graph.ts')).drawGraph(source, options)))
}

export function addSchedules(program: Command, end: End): void {
  const load = () => import('./schedules.ts')
  const schedules = program.command('schedules').description('jobs by the calendar')
  schedules
    .command('list', { isDefault: true })
    .description('list them: when each fires next, and what it started last')
    .action(act(end, async (options) => (await load()).listSchedules(options)))
  schedules
    .command('show <schedule>')
    .description('all about one')
    .action(act(end, async (options, schedule) => (await load()).showSchedule(schedule, options)))
  schedules
    .command('run <schedule>')
    .description('start its job now, with the token of an admin; its own times stay as they are')
    .option('--key <key>', 'idempotency key: the same key starts it once')
    .action(act(end, async (options: RunOptions, schedule) => (await load()).runSchedule(schedule, options)))
}

export function addWebhooks(program: Command, end: End): void {
  const load = () => import('./webhooks.ts')
  const webhooks = program.command('webhooks').description('messages to the outside, and who gets them')
  webhooks
    .command('deliveries', { isDefault: true })
    .description('list messages and what became of them, the newest first')
    .option('--job <job>', 'only messages about this job')
    .option('--event <event>', 'only messages of this event, such as job_finished')
    .addOption(new Option('--status <status>', 'only these').choices(['pending', 'delivered', 'failed']))
    .option('--owner <client>', 'only those of this client, for admins')
    .addOption(new Option('--limit <number>', 'at most so many').argParser(count).default(20))
    .action(act(end, async (options: DeliveryOptions) => (await load()).listDeliveries(options)))
  webhooks
    .command('delivery <message>')
    .description('one message with its body and every try to send it')
    .action(act(end, async (options, message) => (await load()).showDelivery(message, options)))
  webhooks
    .command('redeliver <message>')
    .description('send a message once more')
    .action(act(end, async (options, message) => (await load()).redeliver(message, options)))
  webhooks
    .command('endpoints')
    .description('list those who get messages, and how they fare')
    .option('--owner <client>', 'only those of this client, for admins')
    .action(act(end, async (options) => (await load()).listEndpoints(options)))
  webhooks
    .command('enable <endpoint>')
    .description('send to an endpoint again that was disabled; by its id or its address')
    .action(act(end, async (options, endpoint) => (await load()).enableEndpoint(endpoint, options)))
  webhooks
    .command('secret <endpoint>')
    .description('print what its messages are signed with; by its id or its address')
    .action(act(end, async (options, endpoint) => (await load()).showSecret(endpoint, options)))
  webhooks
    .command('rotate <endpoint>')
    .description('replace that secret, and print the new one')
    .addOption(
      new Option('--overlap <span>', 'so long both are used; a day without it, 0 if it has leaked').argParser(spanMs),
    )
    .option('--key <key>', 'idempotency key: the same key replaces it once')
    .action(act(end, async (options: RotateOptions, endpoint) => (await load()).rotateSecret(endpoint, options)))
}

export function addAccount(program: Command, end: End): void {
  const load = () => import('./account.ts')
  program
    .command('status')
    .description('how many workers and jobs there are')
    .action(act(end, async (options) => (await load()).showStatus(options)))
  program
    .command('account')
    .description('whom the token belongs to, and what is left of its quota')
    .action(act(end, async (options) => (await load()).showAccount(options)))
  program
    .command('admin')
    .description('change the running server, with the token of an admin')
    .command('reload')
    .description('read the files of clients, workers and schedules anew')
    .action(act(end, async (options) => (await load()).reload(options)))
}
