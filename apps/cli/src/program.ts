import { readFileSync } from 'node:fs'
import { Argument, Command, CommanderError } from 'commander'
import { act } from './action.ts'
import type { End } from './action.ts'
import { addAgents, addAutomations, addPublishedEvents, addRuns, addToolsAndAudit } from './automation-commands.ts'
import { printCompletion, SHELLS } from './completion.ts'
import { addDocuments } from './document-commands.ts'
import { addHistory } from './event-commands.ts'
import { addFiles } from './file-commands.ts'
import { EXIT, exitCodeOf, Failure } from './failure.ts'
import { addJobs, addQuarantine } from './job-commands.ts'
import { addMcp } from './mcp-commands.ts'
import type { OpenOptions } from './open.ts'
import { addPreview } from './preview-command.ts'
import type { Screen } from './screen.ts'
import { addAccount, addCatalogue, addMigrate, addSchedules, addServers, addWebhooks } from './server-commands.ts'
import { screenFor } from './session.ts'
import type { GlobalOptions } from './session.ts'

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
    const code = String(error.code)
    return new Failure(code, error.message, { cause: error, exitCode: exitCodeOf(code, detailsOf(error)) })
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return new Failure('INTERNAL', `Internal error: ${text}`)
}

function detailsOf(error: Error): Readonly<Record<string, unknown>> {
  const details = 'details' in error ? error.details : undefined
  return typeof details === 'object' && details !== null ? { ...details } : {}
}

function createProgram(end: End): Command {
  const program = new Command('impresario')
    .description('Durable workflow engine and job orchestrator.')
    .version(version(), '-V, --version')
    .option('--url <address>', 'address of the server (or IMPRESARIO_URL)')
    .option('--token <token>', "a client's token (or IMPRESARIO_TOKEN)")
    .option('--json', 'print only JSON')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('Run the command with --help for its arguments and options.')
    .exitOverride()
    .addHelpText('after', '\nStart with "impresario dev": it runs a server, workers and a demo on this machine.')
  addServers(program, end)
  addMigrate(program, end)
  addJobs(program, end)
  addHistory(program, end)
  addFiles(program, end)
  addQuarantine(program, end)
  addCatalogue(program, end)
  addSchedules(program, end)
  addAutomations(program, end)
  addRuns(program, end)
  addPublishedEvents(program, end)
  addAgents(program, end)
  addToolsAndAudit(program, end)
  addPreview(program, end)
  addWebhooks(program, end)
  addAccount(program, end)
  addDocuments(program, end)
  addMcp(program, end)
  addOpen(program, end)
  addCompletion(program, end)
  for (const group of program.commands) group.hook('preSubcommand', refuseUnknown)
  return program
}

function addOpen(program: Command, end: End): void {
  program
    .command('open [job]')
    .description('open the dashboard in a browser, signed in')
    .option('--no-browser', 'only print the link')
    .action(
      act(end, async (options: OpenOptions, job: string | undefined) =>
        (await import('./open.ts')).openDashboard(job, options),
      ),
    )
}

function addCompletion(program: Command, end: End): void {
  program
    .command('completion')
    .description('print the completion script for bash, zsh or fish')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText('after', COMPLETION_HELP)
    .action((shell: (typeof SHELLS)[number]) => end(printCompletion(program, shell)))
}

const COMPLETION_HELP = `
  source <(impresario completion bash)                    in ~/.bashrc
  source <(impresario completion zsh)                     in ~/.zshrc, after compinit
  impresario completion fish | source                     in ~/.config/fish/config.fish`

/** A group without a word lists; with a word that it does not have, it must not take that for an argument of the list. */
function refuseUnknown(group: Command): void {
  const [word] = group.args
  const known = group.commands.map((command) => command.name())
  if (word === undefined || word.startsWith('-') || word === 'help' || known.includes(word)) return
  group.error(`error: unknown command '${group.name()} ${word}'; there is ${known.join(', ')}`)
}

function version(): string {
  const file = new URL('../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version
}
