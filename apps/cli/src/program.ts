import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import type { End } from './action.ts'
import { EXIT, exitCodeOf, Failure, usage } from './failure.ts'
import type { Screen } from './screen.ts'
import { screenFor } from './session.ts'
import type { GlobalOptions } from './session.ts'

/**
 * Runs one command and gives the code to end with. What a command needs is loaded when it is called: `jobs list` must
 * not wait for a web server that it does not start.
 */
export async function run(argv: readonly string[]): Promise<number> {
  let exitCode: number = EXIT.ok
  const end = (code: number): void => {
    exitCode = code
  }
  const isJson = argv.includes('--json')
  const program = await createProgram(end, argv[2] === 'documents', isJson)
  try {
    await program.parseAsync(argv)
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return EXIT.ok
      if (!isJson) return EXIT.usage
      // Where nothing could be read, the option was not read either.
      return report(usage(error.message.replace(/^error: /, ''), HELP_HINT), screenFor({ json: true }))
    }
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

const HELP_HINT = 'Run the command with --help for its arguments and options.'

/**
 * `documents search` is asked for again and again, by scripts and editors. It does not wait for the other hundred commands to
 * be read, which took longer than the search.
 */
async function createProgram(end: End, isOfDocuments: boolean, isJson: boolean): Promise<Command> {
  const program = new Command('impresario')
    .description('Durable workflow engine and job orchestrator.')
    .version(version(), '-V, --version')
    .option('--url <address>', 'address of the server (or IMPRESARIO_URL)')
    .option('--token <token>', "a client's token (or IMPRESARIO_TOKEN)")
    .option('--json', 'print only JSON')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError(HELP_HINT)
    // What is wrong with the arguments is then reported as JSON.
    .configureOutput(isJson ? { writeErr: () => undefined } : {})
    .exitOverride()
    .addHelpText('after', '\nStart with "impresario dev": it runs a server, workers and a demo on this machine.')
  if (isOfDocuments) (await import('./document-commands.ts')).addDocuments(program, end)
  else (await import('./all-commands.ts')).addAll(program, end)
  for (const group of program.commands) group.hook('preSubcommand', refuseUnknown)
  return program
}

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
