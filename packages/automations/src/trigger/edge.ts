/**
 * How a condition trigger stands. A condition fires when it becomes true, not while it stays true:
 *
 * ```
 *   clear ──holds──▶ pending ──held for `forMs`──▶ raised ──reset──▶ clear
 *            ◀──no longer holds──┘        (fires once, unless in its cooldown)
 * ```
 */
export interface EdgeState {
  readonly phase: 'clear' | 'pending' | 'raised'
  /** When it came into this phase. */
  readonly since: number
  readonly firedAt: number | undefined
}

export interface EdgePolicy {
  /** The condition must hold so long before it fires. */
  readonly forMs: number
  /** After a firing nothing fires for so long. */
  readonly cooldownMs: number
}

/** What was seen at one moment. `undefined`: the condition could not be evaluated, and nothing changes. */
export interface Observation {
  readonly at: number
  readonly holds: boolean | undefined
  /** With hysteresis: whether it counts as over. Without: the condition does not hold. */
  readonly isOver: boolean
}

export interface EdgeStep {
  readonly state: EdgeState
  readonly outcome: 'quiet' | 'fires' | 'cooldown'
}

export const CLEAR: EdgeState = { phase: 'clear', since: 0, firedAt: undefined }

/**
 * What one observation makes of a condition. They come in the order in which they are written; the clock of an instance may
 * be behind that of the one before, and then no time has passed.
 */
export function observe(state: EdgeState, { at: told, holds, isOver }: Observation, policy: EdgePolicy): EdgeStep {
  if (holds === undefined) return { state, outcome: 'quiet' }
  const at = Math.max(told, state.since)
  if (state.phase === 'raised') {
    return { state: isOver ? { ...state, phase: 'clear', since: at } : state, outcome: 'quiet' }
  }
  if (!holds) {
    return { state: state.phase === 'clear' ? state : { ...state, phase: 'clear', since: at }, outcome: 'quiet' }
  }
  const since = state.phase === 'pending' ? state.since : at
  if (at - since < policy.forMs) return { state: { ...state, phase: 'pending', since }, outcome: 'quiet' }
  const isCooling = state.firedAt !== undefined && at - state.firedAt < policy.cooldownMs
  return {
    state: { phase: 'raised', since: at, firedAt: isCooling ? state.firedAt : at },
    outcome: isCooling ? 'cooldown' : 'fires',
  }
}
