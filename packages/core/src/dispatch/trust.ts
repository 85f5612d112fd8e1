import { ImpresarioError } from '@impresario/protocol'
import { STRATEGIES, strategySet } from './strategies.ts'
import type { Criterion, Strategies, Strategy } from './strategies.ts'

/**
 * The strategies of a program: those that are built in and its own, whose names must be new. Where a least reputation is
 * asked for, workers below it come after all others in each of them: they get what no better worker has room for, so they
 * can still win back what they lost.
 */
export function strategiesWith(own: readonly Strategy[], reputationMin: number): Strategies {
  const names = new Set(STRATEGIES.keys())
  for (const { name, criteria } of own) {
    if (names.has(name)) throw refused(name, 'is there already. Give it another name.')
    if (criteria.length === 0) throw refused(name, 'has no criteria. Give it at least one.')
    names.add(name)
  }
  const all = [...STRATEGIES.values(), ...own]
  if (reputationMin <= 0) return strategySet(all)
  const trusted = trust(reputationMin)
  return strategySet(all.map(({ name, criteria }) => ({ name, criteria: [trusted, ...criteria] })))
}

function trust(reputationMin: number): Criterion {
  return {
    name: 'trust',
    isSteady: true,
    measure: ({ worker }) => (worker.reputation >= reputationMin ? 0 : 1),
    because: (_candidate, { worker }) =>
      `has a reputation of at least ${reputationMin} and '${worker.id}' has ${worker.reputation}`,
  }
}

function refused(name: string, what: string): ImpresarioError {
  return new ImpresarioError('INVALID_CONFIGURATION', `The dispatch strategy '${name}' ${what}`, {
    details: { strategy: name },
  })
}
