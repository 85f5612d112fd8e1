import { trigger } from '@impresario/recurrence'
import type { Zones } from '@impresario/recurrence'
import type { AutomationTrigger } from './spec.ts'

/** A trigger in words, for people who look at a list of automations. */
export function triggerWords(given: AutomationTrigger, zones: Zones): string {
  switch (given.kind) {
    case 'time':
      return trigger(given.spec, zones).words
    case 'event':
      return `On event "${given.topic}"${ifHolds(given.filter)}`
    case 'webhook':
      return `On a message from webhook source "${given.source}"${ifHolds(given.filter)}`
    case 'manual':
      return 'Only when it is started by hand'
    case 'condition': {
      const { expression, tool, forSeconds } = given
      const held = forSeconds > 0 ? ` for ${forSeconds} s` : ''
      const asked = tool === undefined ? 'of reported values' : `of ${tool.uses}, asked every ${tool.everySeconds} s`
      return `When ${expression}${held}, ${asked}`
    }
  }
}

function ifHolds(filter: string | undefined): string {
  return filter === undefined ? '' : `, if ${filter}`
}
