import { QUEUES } from '@impresario/core'
import type { Queue } from '@impresario/core'

/** A PostgreSQL notification can carry at most 7,999 bytes. */
const BYTES_MAX = 7_500
/** Beyond this many messages at once, a single message that asks for a full rescan is enough. */
const MESSAGES_MAX = 4

export interface WakeUp {
  /** The session that sent it. */
  readonly from: number
  /** Lanes of a queue that may have received items; null: any of them. Absent: only a heartbeat. */
  readonly queue?: Queue
  readonly lanes?: readonly string[] | null
}

/** The messages that announce these lanes. */
export function wakeUpTexts(from: number, lanesOf: ReadonlyMap<Queue, ReadonlySet<string>>): readonly string[] {
  return [...lanesOf].flatMap(([queue, lanes]) => {
    const texts: string[] = []
    let part: string[] = []
    let bytes = 0
    for (const lane of lanes) {
      const size = Buffer.byteLength(JSON.stringify(lane)) + 1
      if (bytes + size > BYTES_MAX && part.length > 0) {
        texts.push(JSON.stringify({ from, queue, lanes: part }))
        part = []
        bytes = 0
      }
      part.push(lane)
      bytes += size
    }
    texts.push(JSON.stringify({ from, queue, lanes: part }))
    const fits = texts.length <= MESSAGES_MAX && texts.every((text) => Buffer.byteLength(text) < BYTES_MAX + 200)
    return fits ? texts : [JSON.stringify({ from, queue, lanes: null })]
  })
}

/**
 * Boundary of text that arrives over the channel. Any client may write there: messages that cannot be parsed are
 * ignored.
 */
export function parseWakeUp(text: string | undefined): WakeUp | undefined {
  let value: unknown
  try {
    value = JSON.parse(text ?? '')
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || !('from' in value) || typeof value.from !== 'number') {
    return undefined
  }
  const queue = 'queue' in value ? QUEUES.find((name) => name === value.queue) : undefined
  if (queue === undefined) return { from: value.from }
  const lanes = 'lanes' in value && Array.isArray(value.lanes) ? value.lanes : null
  return { from: value.from, queue, lanes: lanes?.filter((lane): lane is string => typeof lane === 'string') ?? null }
}
