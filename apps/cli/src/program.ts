import { readFileSync } from 'node:fs'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { EXIT, Failure } from './failure.ts'
import type { Screen } from './screen.ts'
import { screenFor } from './session.ts'
import type { GlobalOptions } from './session.ts'
import type { DevOptions } from './dev.ts'
import type { ListOptions } from './jobs.ts'

/**
 * Runs one command and gives the code to end with. What a command needs is loaded when it is called: `jobs list` must
 * not wait for a web server that it does not start.
 */
export async function run(argv: readonly string[]): Promise<number> {
  let exitCode: number = EXIT.ok
  const program = createProgram((code) => {
    exitCode = code
  })
  try {
    await program.parseAsync(argv)
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    return report(error, screenFor(program.opts<GlobalOptions>()))
  }
}

/** Says what went wrong, on the error stream: as a sentence, or as JSON where JSON was asked for. */
function report(error: unknown, screen: Screen): number {
  const failure = error instanceof Failure ? error : unexpected(error)
  const { code, message, hint, exitCode } = failure
  if (screen.isJson) screen.err(JSON.stringify({ error: message, code, ...(hint === undefined ? {} : { hint }) }))
  else screen.err([`${screen.paint('red', '✗')} ${message}`, ...(hint === undefined ? [] : [`  ${hint}`])].join('\n'))
  return exitCode
}

/** Refusals of the server's parts are sentences for people; anything else is a bug, and its stack helps to find it. */
function unexpected(error: unknown): Failure {
  if (error instanceof Error && error.name === 'ImpresarioError' && 'code' in error) {
    return new Failure(String(error.code), error.message, { cause: error })
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return new Failure('INTERNAL', `Something went wrong that should not: ${text}`)
}

type End = (exitCode: number) => void

function createProgram(end: End): Command {
  const program = new Command('impresario')
    .description('Directs long, distributed work: blueprints, jobs, workers.')
    .version(version(), '-V, --version')
    .option('--url <address>', 'address of the server (or IMPRESARIO_URL)')
    .option('--token <token>', "a client's token (or IMPRESARIO_TOKEN)")
    .option('--json', 'print JSON and nothing else')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('Run it with --help to see what it takes.')
    .exitOverride()
    .addHelpText('after', '\nBegin with "impresario dev": it runs everything on this machine, with a demo.')
  addServers(program, end)
  addJobs(program.command('jobs').description('start, watch and steer jobs'), end)
  program
    .command('explain <job>')
    .description('why the tasks of a job are where they are')
    .action(act(end, async (options, job) => (await import('./listings.ts')).explainJob(job, options)))
  program
    .command('workers')
    .description('who is here to work')
    .command('list', { isDefault: true })
    .description('list the workers')
    .action(act(end, async (options) => (await import('./listings.ts')).listWorkers(options)))
  addBlueprints(program.command('blueprint').description('look at blueprints'), end)
  return program
}

function version(): string {
  const file = new URL('../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version
}

/** Joins a command's own options with those of the whole program, and keeps the code to end with. */
function act<Options extends GlobalOptions>(
  end: End,
  action: (options: Options, ...args: string[]) => Promise<number>,
): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    const { options, args } = callOf<Options>(given)
    end(await action(options, ...args))
  }
}

/** Boundary: commander calls with the arguments, then the options, then the command. */
function callOf<Options>(given: readonly unknown[]): { readonly options: Options; readonly args: string[] } {
  const command = given.at(-1) as Command
  return { options: command.optsWithGlobals<Options & Record<string, unknown>>(), args: given.slice(0, -2) as string[] }
}

function addServers(program: Command, end: End): void {
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
    .option('--interactive', 'let the demo wait for your approval')
    .addOption(new Option('--approve-after <seconds>', 'the demo approves by itself').argParser(number).default(3))
    .action(act(end, async (options: DevOptions) => (await import('./dev.ts')).dev(options)))
}

function addJobs(jobs: Command, end: End): void {
  const load = () => import('./jobs.ts')
  jobs
    .command('list', { isDefault: true })
    .description('list jobs, the newest first')
    .option('--status <status>', 'only these, separated by commas')
    .option('--blueprint <name>', 'only jobs of this blueprint')
    .addOption(new Option('--limit <number>', 'at most so many').argParser(count).default(20))
    .action(act(end, async (options: ListOptions) => (await load()).listJobs(options)))
  jobs
    .command('show <job>')
    .description('all about one job')
    .action(act(end, async (options, job) => (await load()).showJob(job, options)))
  jobs
    .command('start <blueprint>')
    .description('start a job')
    .option('--data <json>', 'initial data as JSON, @file, or - for standard input')
    .option('--key <key>', 'idempotency key: the same key gives the same job')
    .addOption(new Option('--priority <number>', 'higher goes first').argParser(number))
    .option('--watch', 'follow it to its end')
    .action(act(end, async (options, blueprint) => (await load()).startJob(blueprint, options)))
  jobs
    .command('watch <job>')
    .description('follow a job to its end (ends with 0 if it finished, 3 if not)')
    .action(act(end, async (options, job) => (await load()).watchJob(job, options)))
  jobs
    .command('approve <job> [decision]')
    .description('answer a job that waits for a person (decision: approved)')
    .option('--comment <text>', 'why')
    .action(act(end, async (options, job, decision) => (await load()).approveJob(job, decision ?? 'approved', options)))
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

function addBlueprints(blueprint: Command, end: End): void {
  blueprint
    .command('list', { isDefault: true })
    .description('list the blueprints of the server')
    .action(act(end, async (options) => (await import('./listings.ts')).listBlueprints(options)))
  blueprint
    .command('graph <file-or-name>')
    .description('draw a blueprint: from its file, or by its name on the server')
    .addOption(new Option('--format <format>', 'dot or svg').choices(['dot', 'svg']))
    .option('-o, --output <file>', 'write it there')
    .option('--name <blueprint>', 'which one, if the file has several')
    .action(act(end, async (options, source) => (await import('./graph.ts')).drawGraph(source, options)))
}

function number(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('It has to be a number.')
  return value
}

function count(text: string): number {
  const value = number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It has to be 1 or more.')
  return value
}

function port(text: string): number {
  const value = number(text)
  if (Number.isInteger(value) && value >= 0 && value <= 65_535) return value
  throw new InvalidArgumentError('It goes from 0 to 65535.')
}
