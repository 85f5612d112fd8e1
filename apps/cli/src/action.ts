import type { Command } from 'commander'
import type { GlobalOptions } from './session.ts'

/** Gets the code to end with. */
export type End = (exitCode: number) => void

/** Joins a command's own options with those of the whole program, and keeps the code to end with. */
export function act<Options extends GlobalOptions, Args extends readonly unknown[] = string[]>(
  end: End,
  action: (options: Options, ...args: Args) => Promise<number>,
): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    const { options, args } = callOf<Options, Args>(given)
    end(await action(options, ...args))
  }
}

/** Boundary: commander calls with the arguments, then the options, then the command. */
function callOf<Options, Args>(given: readonly unknown[]): { readonly options: Options; readonly args: Args } {
  const command = given.at(-1) as Command
  return { options: command.optsWithGlobals<Options & Record<string, unknown>>(), args: given.slice(0, -2) as Args }
}
