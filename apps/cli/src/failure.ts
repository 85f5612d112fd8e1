/** How the person at the keyboard calls this command: through npx in a clone, by its name where it is installed. */
export const COMMAND = process.env['npm_command'] === undefined ? 'impresario' : 'npx impresario'

/**
 * How the command ends. `jobs watch` tells a job that did not finish from a command that did not work. A server says why it
 * does not run, with the numbers of sysexits.h, so that a supervisor can tell what a restart may mend from what it cannot.
 */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  notFinished: 3,
  timedOut: 4,
  blueprintRefused: 65,
  storageUnavailable: 69,
  cannotListen: 71,
  storageFailed: 74,
  dataInUse: 75,
  configurationRefused: 78,
} as const

/** The code that belongs to a refusal of the server's parts. */
export function exitCodeOf(code: string, details: Readonly<Record<string, unknown>> = {}): number {
  switch (code) {
    case 'INVALID_CONFIGURATION':
      return 'listen' in details ? EXIT.cannotListen : EXIT.configurationRefused
    case 'INVALID_BLUEPRINT':
      return EXIT.blueprintRefused
    case 'STORAGE_REFUSED':
    case 'STORAGE_UNAVAILABLE':
      return 'directory' in details ? EXIT.dataInUse : EXIT.storageUnavailable
    default:
      return EXIT.failure
  }
}

/** Something that the person at the keyboard can do something about. Printed without a stack. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly code: string
  readonly exitCode: number
  /** What to do about it. */
  readonly hint: string | undefined

  constructor(code: string, message: string, options: { hint?: string; exitCode?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.code = code
    this.exitCode = options.exitCode ?? EXIT.failure
    this.hint = options.hint
  }
}

export function usage(message: string, hint?: string): Failure {
  return new Failure('USAGE', message, { exitCode: EXIT.usage, ...(hint === undefined ? {} : { hint }) })
}
