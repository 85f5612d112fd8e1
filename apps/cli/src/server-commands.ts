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
    .description('run a development server on this machine, with a demo unless BLUEPRINTS_DIR is set')
    .addOption(new Option('--port <port>', 'port to listen on; the next free one if it is taken').argParser(port))
    .option('--data <directory>', 'data directory', './impresario-data')
    .option('--blueprints <directory>', 'blueprints to run, watched for changes (or BLUEPRINTS_DIR)')
    .option('--no-type-check', 'do not check the types of the blueprints after each change')
    .option('--interactive', 'make the demo wait for your approval')
    .addOption(
      new Option('--approve-after <seconds>', 'seconds until the demo approves by itself').argParser(number).default(3),
    )
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
    .description('transfer all data from one storage to another, verified by counts and checksums')
    .option('--dry-run', 'count the data in both storages without changing anything')
    .option('--keep-source', 'make a copy: leave the source usable')
    .option('--restart', 'delete the data of an unfinished transfer from the target and start again')
    .option('--force', 'do not check for running orchestrators')
    .option('--unmark', 'remove the transfer mark from a storage, so that orchestrators can start on it')
    .addOption(new Option('--page <entries>', 'entries per page').argParser(count).default(1_000))
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
  const workers = program.command('workers').description('list and inspect workers')
  workers
    .command('list', { isDefault: true })
    .description('list the workers')
    .action(act(end, async (options) => (await load()).listWorkers(options)))
  workers
    .command('show <worker>')
    .description('show one worker')
    .action(act(end, async (options, worker) => (await load()).showWorker(worker, options)))
  workers
    .command('explain <worker>')
    .description('show why a worker gets tasks, or gets none')
    .action(act(end, async (options, worker) => (await import('./system.ts')).explainWorker(worker, options)))
  workers
    .command('history <worker>')
    .description('show the history of a worker, newest first')
    .addOption(new Option('--limit <number>', 'maximum number of events').argParser(count).default(50))
    .action(
      act(end, async (options: WorkerHistoryOptions, worker) =>
        (await import('./worker-history.ts')).showWorkerHistory(worker, options),
      ),
    )
  program
    .command('skills')
    .description('list the skills of the workers')
    .action(act(end, async (options) => (await load()).listSkills(options)))
  program
    .command('queues')
    .description(
      'list what waits for workers, by kind of work, with what came and went in the last minute (admins only)',
    )
    .action(act(end, async (options) => (await import('./system.ts')).listQueues(options)))
  addBlueprints(program.command('blueprint').description('list, show and draw blueprints'), end)
}

function addBlueprints(blueprint: Command, end: End): void {
  const load = () => import('./listings.ts')
  blueprint
    .command('list', { isDefault: true })
    .description('list the blueprints of the server')
    .action(act(end, async (options) => (await load()).listBlueprints(options)))
  blueprint
    .command('show <name>')
    .description('show the states and transitions of a blueprint')
    .addOption(new Option('--blueprint-version <number>', 'version to show (default: the latest)').argParser(count))
    .action(act(end, async (options, name) => (await load()).showBlueprint(name, options)))
  blueprint
    .command('graph <file-or-name>')
    .description('draw a blueprint from a file, or by its name on the server')
    .addOption(new Option('--format <format>', 'dot or svg').choices(['dot', 'svg']))
    .option('-o, --output <file>', 'output file')
    .option('--name <blueprint>', 'blueprint to draw, if the file exports several')
    .action(act(end, async (options, source) => (await import('./graph.ts')).drawGraph(source, options)))
}

export function addSchedules(program: Command, end: End): void {
  const load = () => import('./schedules.ts')
  const schedules = program.command('schedules').description('list, run, pause and resume schedules')
  schedules
    .command('list', { isDefault: true })
    .description('list schedules with their next and last runs')
    .action(act(end, async (options) => (await load()).listSchedules(options)))
  schedules
    .command('show <schedule>')
    .description('show one schedule')
    .action(act(end, async (options, schedule) => (await load()).showSchedule(schedule, options)))
  schedules
    .command('run <schedule>')
    .description('start the job of a schedule now (admins only); the schedule itself does not change')
    .option('--key <key>', 'idempotency key: repeated calls with the same key start one job')
    .action(act(end, async (options: RunOptions, schedule) => (await load()).runSchedule(schedule, options)))
  schedules
    .command('pause <schedule>')
    .description('stop a schedule from firing until it is resumed (admins only)')
    .action(act(end, async (options, schedule) => (await load()).pauseSchedule(schedule, options)))
  schedules
    .command('resume <schedule>')
    .description('let a paused schedule fire again, from its next time on (admins only)')
    .action(act(end, async (options, schedule) => (await load()).resumeSchedule(schedule, options)))
}

export function addWebhooks(program: Command, end: End): void {
  const load = () => import('./webhooks.ts')
  const webhooks = program.command('webhooks').description('inspect webhook deliveries and endpoints')
  webhooks
    .command('deliveries', { isDefault: true })
    .description('list messages and their status, newest first')
    .option('--job <job>', 'only messages about this job')
    .option('--event <event>', 'only messages of this event, such as job_finished')
    .addOption(new Option('--status <status>', 'only these').choices(['pending', 'delivered', 'failed']))
    .option('--owner <client>', 'only those of this client (admins only)')
    .addOption(new Option('--limit <number>', 'maximum number of results').argParser(count).default(20))
    .action(act(end, async (options: DeliveryOptions) => (await load()).listDeliveries(options)))
  webhooks
    .command('delivery <message>')
    .description('show one message with its body and all attempts')
    .action(act(end, async (options, message) => (await load()).showDelivery(message, options)))
  webhooks
    .command('redeliver <message>')
    .description('send a message again')
    .action(act(end, async (options, message) => (await load()).redeliver(message, options)))
  webhooks
    .command('endpoints')
    .description('list endpoints and their health')
    .option('--owner <client>', 'only those of this client (admins only)')
    .action(act(end, async (options) => (await load()).listEndpoints(options)))
  webhooks
    .command('enable <endpoint>')
    .description('enable a disabled endpoint, by id or URL')
    .action(act(end, async (options, endpoint) => (await load()).enableEndpoint(endpoint, options)))
  webhooks
    .command('secret <endpoint>')
    .description('print the signing secret of an endpoint, by id or URL')
    .action(act(end, async (options, endpoint) => (await load()).showSecret(endpoint, options)))
  webhooks
    .command('rotate <endpoint>')
    .description('replace the signing secret and print the new one')
    .addOption(
      new Option(
        '--overlap <span>',
        'how long both secrets are used (default: one day); 0 if the old one has leaked',
      ).argParser(spanMs),
    )
    .option('--key <key>', 'idempotency key: repeated calls with the same key replace the secret once')
    .action(act(end, async (options: RotateOptions, endpoint) => (await load()).rotateSecret(endpoint, options)))
}

export function addAccount(program: Command, end: End): void {
  const load = () => import('./account.ts')
  program
    .command('status')
    .description('show the number of workers and jobs')
    .action(act(end, async (options) => (await load()).showStatus(options)))
  program
    .command('account')
    .description('show the client of the token and its remaining quota')
    .action(act(end, async (options) => (await load()).showAccount(options)))
  const admin = program.command('admin').description('administer the running server (admins only)')
  admin
    .command('system')
    .description('show versions, storage and what it promises, instances, who leads what, and limits')
    .action(act(end, async (options) => (await import('./system.ts')).showSystem(options)))
  admin
    .command('clients')
    .description('list the clients of the configuration')
    .action(act(end, async (options) => (await import('./system.ts')).listClients(options)))
  admin
    .command('log-level <level>')
    .description('change the log level until the next start: debug, info, warn, error or silent')
    .action(act(end, async (options, level) => (await load()).setLogLevel(level, options)))
  admin
    .command('reload')
    .description('reload clients.toml, workers.toml and schedules.toml')
    .action(act(end, async (options) => (await load()).reload(options)))
}
