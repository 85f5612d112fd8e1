import { FAULTS, RARITIES } from '../marks.ts'

/** Of the jobs that could finish, at least this share must have done so. */
const FINISHED_MIN = 0.95

/**
 * A run proves nothing if too little happened in it: [C-09] jobs have to finish, every fault has to occur and every
 * rare event has to be seen. For runs over many seeds; one world has only some of them.
 */
export function floor(counts: Readonly<Record<string, number>>): readonly string[] {
  const problems: string[] = []
  const could = counts['jobs that could finish'] ?? 0
  const did = counts['jobs that did finish'] ?? 0
  if (did < could * FINISHED_MIN || could === 0) problems.push(`Only ${did} of ${could} jobs that could finish did.`)
  for (const name of [...FAULTS, ...RARITIES]) {
    if ((counts[name] ?? 0) === 0) problems.push(`"${name}" never happened: the workload has become weaker.`)
  }
  return problems
}
