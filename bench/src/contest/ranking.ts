/** From single matches to one row for each contestant. */
import { median } from '../measure.ts'
import type { League } from './contestant.ts'
import type { FigureName, Figures } from './match.ts'

/** One match as it is stored. */
export interface Match {
  readonly name: string
  readonly variant: string
  readonly league: League
  readonly round: number
  readonly title: string
  readonly durability: string
  readonly shape: 'apart' | 'together'
  readonly note?: string
  readonly figures: Figures
  readonly error?: string
}

/** One run of all of them. */
export interface Contest {
  readonly at: string
  readonly minutes: number
  readonly machine: { readonly cores: number; readonly processor: string; readonly kernel: string }
  readonly programs: readonly string[]
  readonly rounds: number
  readonly seconds: number
  readonly width: number
  readonly singles: number
  readonly matches: readonly Match[]
}

/** A median, and whether other processes disturbed all the rounds that it comes from. */
export interface Figure {
  readonly value: number
  readonly isDisturbed: boolean
}

/** The results of one contestant in one league. */
export interface Row extends Pick<Match, 'name' | 'variant' | 'league' | 'title' | 'durability' | 'note'> {
  readonly isOwn: boolean
  readonly figures: Readonly<Partial<Record<FigureName, Figure>>>
  readonly rounds: number
  readonly failures: number
}

/** The share of the machine that other processes may use, in per cent, before a figure counts as disturbed. */
export const DISTURBED_PERCENT = 15

const PHASE_OF: Readonly<Partial<Record<FigureName, `foreign${string}`>>> = {
  enqueuePerS: 'foreignEnqueue',
  drainPerS: 'foreignDrain',
  endToEndPerS: 'foreignEndToEnd',
  cpuMsPerJob: 'foreignEndToEnd',
  startP50Ms: 'foreignLatency',
  startP99Ms: 'foreignLatency',
  diamondsPerS: 'foreignDiamonds',
}

const NAMES: readonly FigureName[] = [
  'enqueuePerS',
  'drainPerS',
  'endToEndPerS',
  'cpuMsPerJob',
  'startP50Ms',
  'startP99Ms',
  'diamondsPerS',
  'serverMiB',
  'workerMiB',
  'repeated',
]

/** In the order of their first matches. */
export function rowsOf(matches: readonly Match[], league: League): readonly Row[] {
  const groups = new Map<string, Match[]>()
  for (const match of matches) {
    if (match.league !== league) continue
    const key = `${match.name}/${match.variant}`
    groups.set(key, [...(groups.get(key) ?? []), match])
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    return first === undefined ? [] : [rowOf(first, group)]
  })
}

function rowOf(first: Match, group: readonly Match[]): Row {
  const { name, variant, league, title, durability, note } = first
  const figures: Partial<Record<FigureName, Figure>> = {}
  for (const figure of NAMES) {
    const found = figureOf(group, figure)
    if (found !== undefined) figures[figure] = found
  }
  const failures = group.filter(({ error }) => error !== undefined).length
  const about = { name, variant, league, title, durability, ...(note === undefined ? {} : { note }) }
  return { ...about, isOwn: name.startsWith('impresario-'), figures, rounds: group.length, failures }
}

/** The median of the undisturbed rounds; of all rounds if there is none. */
function figureOf(group: readonly Match[], name: FigureName): Figure | undefined {
  const phase = PHASE_OF[name]
  const found = group.flatMap(({ figures }) => {
    const value = figures[name]
    const foreign = phase === undefined ? 0 : (figures[phase] ?? 0)
    return value === undefined ? [] : [{ value, foreign }]
  })
  if (found.length === 0) return undefined
  const calm = found.filter(({ foreign }) => foreign <= DISTURBED_PERCENT)
  const values = (calm.length === 0 ? found : calm).map(({ value }) => value)
  return { value: median(values), isDisturbed: calm.length === 0 }
}
