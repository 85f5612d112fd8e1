import { shardSuffix } from '../ports/shard-suffix.ts'
import type { JsonObject } from '@impresario/protocol'
import type { Draft } from './draft.ts'
import type { EventOf } from './event.ts'
import type { Job } from './job.ts'

/** A command from outside. */
export interface Command {
  readonly kind: 'decision' | 'retry' | 'discard'
  /** The visit that it ended. */
  readonly visit: number
  readonly by: string
  /** The decision, or the digest of other data. */
  readonly what: string
}

export type CommandEvent = EventOf<'decisionMade'> | EventOf<'retried'> | EventOf<'discarded'> | EventOf<'cancelled'>

/** A repetition comes soon after the first: a command is not repeated after eight others. */
const COMMANDS_KEPT = 8

export function remember(draft: Draft, event: Exclude<CommandEvent, EventOf<'cancelled'>>): void {
  const { visit, commands = [] } = draft.job
  const command: Command = { kind: kindOf(event), visit, by: event.by, what: whatOf(event) }
  draft.job.commands = [...commands, command].slice(-COMMANDS_KEPT)
}

/**
 * Whether a job that ignored a command has carried out the very same one before: its first answer was lost, and the caller
 * asks again. The same person, the same decision, the same data; for a cancellation it is enough that the job is cancelled.
 */
export function isRepeated(job: Job, event: CommandEvent): boolean {
  if (event.type === 'cancelled') return job.status === 'cancelled' || job.compensation !== undefined
  const visit = event.type === 'decisionMade' ? event.visit : undefined
  // Without a visit the question that is open now was meant, and that has other answers.
  if (event.type === 'decisionMade' && visit === undefined && job.wait?.kind === 'human') return false
  const of = (job.commands ?? []).filter(({ kind }) => kind === kindOf(event))
  // A visit of zero means the question that was answered last: nothing was open when the caller looked.
  const known = visit === undefined || visit === 0 ? of.at(-1) : of.find((one) => one.visit === visit)
  return known !== undefined && known.by === event.by && known.what === whatOf(event)
}

function kindOf({ type }: Exclude<CommandEvent, EventOf<'cancelled'>>): Command['kind'] {
  switch (type) {
    case 'decisionMade':
      return 'decision'
    case 'retried':
      return 'retry'
    case 'discarded':
      return 'discard'
  }
}

function whatOf(event: Exclude<CommandEvent, EventOf<'cancelled'>>): string {
  switch (event.type) {
    case 'decisionMade':
      return event.data === undefined ? event.decision : `${event.decision} ${digest(event.data)}`
    case 'retried':
      return `${digest(event.initialData)} ${digest(event.stateHistory)}`
    case 'discarded':
      return ''
  }
}

/** Tells two versions of a caller's own data apart. Not a cryptographic hash: collisions on purpose harm only the caller. */
export function digest(data: JsonObject | undefined): string {
  if (data === undefined) return '-'
  const text = JSON.stringify(data)
  return `${text.length}.${shardSuffix(text)}${shardSuffix(`+${text}`)}`
}
