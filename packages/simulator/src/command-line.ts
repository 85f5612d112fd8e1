import { parseArgs } from 'node:util'
import { BUGS, isBugName } from './bugs/index.ts'
import type { BugName } from './bugs/index.ts'

/** Seeds that follow one another. */
export interface SeedRange {
  readonly from: number
  readonly count: number
}

export type Command =
  | { readonly type: 'help' }
  | { readonly type: 'replay'; readonly seed: number; readonly bug: BugName | undefined }
  | { readonly type: 'run'; readonly ranges: readonly SeedRange[]; readonly bug: BugName | undefined }
  | { readonly type: 'exhaustive'; readonly pairs: boolean; readonly only: string | undefined }
  | { readonly type: 'wrong'; readonly problem: string }

export const HELP = `Usage: npm run sim -- [options]

  --seeds N        worlds to run from each first seed (200 without it)
  --from S         the first seed (1 without it); may be given several times
  --seed S         replay one world and print its story
  --bug NAME       plant a bug, to see whether it is found: ${Object.keys(BUGS).join(', ')}
  --exhaustive     every single fault at every storage call of every reference blueprint
  --pairs          with --exhaustive: every pair of faults as well
  --only NAME      with --exhaustive: this blueprint only
`

export function readCommand(args: readonly string[]): Command {
  try {
    return commandOf(args)
  } catch (error) {
    return { type: 'wrong', problem: error instanceof Error ? error.message : String(error) }
  }
}

function commandOf(args: readonly string[]): Command {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string' },
      from: { type: 'string', multiple: true },
      seed: { type: 'string' },
      bug: { type: 'string' },
      exhaustive: { type: 'boolean' },
      pairs: { type: 'boolean' },
      only: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return { type: 'help' }
  if (values.exhaustive === true) return { type: 'exhaustive', pairs: values.pairs === true, only: values.only }
  const { bug } = values
  if (bug !== undefined && !isBugName(bug)) return { type: 'wrong', problem: `There is no bug "${bug}".` }
  if (values.seed !== undefined) return { type: 'replay', seed: numberOf('--seed', values.seed), bug }
  const count = numberOf('--seeds', values.seeds ?? '200')
  const ranges = (values.from ?? ['1']).map((from) => ({ from: numberOf('--from', from), count }))
  return { type: 'run', ranges, bug }
}

function numberOf(name: string, text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 0) throw new Error(`${name} needs a whole number, not "${text}".`)
  return value
}
