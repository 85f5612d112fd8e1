import type { Decision, Effect } from './effect.ts'

/**
 * The turn that a decision asks for at once, if it may be taken in the same commit. What is told to a webhook shows the job as
 * the decision left it, so such a decision is written by itself.
 */
export function asksForTurnNow({ effects }: Decision): boolean {
  return (
    effects.some((effect) => effect.type === 'turn' && effect.delayMs === 0) &&
    !effects.some(({ type }) => type === 'webhook')
  )
}

/**
 * Two decisions of which the second answers the turn that the first asked for, as one: the same as if both had been written
 * one after the other, and no reader had seen the state in between.
 */
export function followedBy(first: Decision, second: Decision): Decision {
  const touched = new Set(second.effects.map(keyOf))
  const left = first.effects.filter(
    (effect) => effect.type !== 'turn' && !(isSent(effect) && touched.has(keyOf(effect))),
  )
  return {
    type: 'decided',
    job: second.job,
    effects: [...left, ...second.effects],
    entries: [...first.entries, ...second.entries],
  }
}

/** Puts something into a queue that a later effect may take out again. */
function isSent({ type }: Effect): boolean {
  return type === 'task' || type === 'timer'
}

/** Effects of one key are about the same item of a queue. */
function keyOf(effect: Effect): string {
  switch (effect.type) {
    case 'turn':
      return 'turn'
    case 'task':
    case 'dropTask':
      return `task ${effect.visit} ${effect.branch}`
    case 'timer':
    case 'dropTimer':
      return `timer ${effect.timer}`
    case 'listen':
    case 'unlisten':
      return `listen ${effect.visit}`
    case 'mail':
      return `mail ${effect.letterId}`
    case 'webhook':
      return `webhook ${effect.messageId}`
  }
}
