/** What some work has cost. Every measure that was not named is 0. */
export interface Usage {
  readonly usd: number
  readonly tokens: number
  /** Of a machine that is paid by time, such as a GPU. */
  readonly seconds: number
}

/** One report of what a task has used, beside what it reported before. */
export type UsageReport = Partial<Usage>

export const NO_USAGE: Usage = { usd: 0, tokens: 0, seconds: 0 }
/** No single report is larger. */
export const USAGE_MAX = 1e12
const MEASURES = ['usd', 'tokens', 'seconds'] as const
const DECIMALS = 1e9

/** The report, or what is wrong with it. */
export function readUsage(report: Readonly<Record<string, unknown>>): Usage | string {
  const known: readonly string[] = MEASURES
  const odd = Object.keys(report).find((name) => !known.includes(name))
  if (odd !== undefined) return `There is no measure "${odd.slice(0, 50)}". There are ${MEASURES.join(', ')}.`
  const read = { ...NO_USAGE }
  for (const name of MEASURES) {
    const value = report[name]
    if (value === undefined || value === null) continue
    if (typeof value !== 'number' || !(value >= 0 && value <= USAGE_MAX)) {
      return `"${name}" must be a number from 0 to ${USAGE_MAX}.`
    }
    read[name] = value
  }
  return MEASURES.every((name) => read[name] === 0)
    ? `Name at least one of ${MEASURES.join(', ')}, with more than 0.`
    : read
}

/** Sums are kept to a billionth, so that a thousand cents are ten dollars. */
export function addUsage(one: Usage, other: Usage): Usage {
  const sum = (name: keyof Usage): number => Math.round((one[name] + other[name]) * DECIMALS) / DECIMALS
  return { usd: sum('usd'), tokens: sum('tokens'), seconds: sum('seconds') }
}
