import { isAnyNumber, isEqual } from '@impresario/protocol'
import type { HistoryBody } from '@impresario/protocol'

/** A value that one step of a job added, changed or removed. */
export interface DataChange {
  /** Keys from the outside in. */
  readonly path: readonly string[]
  readonly kind: 'added' | 'changed' | 'removed'
  readonly before?: unknown
  readonly after?: unknown
}

/** What one step did to the data of a job. */
export interface DataStep {
  readonly id: string
  /** Unix seconds. */
  readonly at: number
  /** The state that wrote it. */
  readonly state: string
  readonly event: string
  readonly changes: readonly DataChange[]
  /** Some of the data was too long to be kept. */
  readonly isCut: boolean
}

/** Deeper values are compared as wholes. */
const DEPTH_MAX = 4
const CHANGES_MAX = 200

/** What is different, in the order of the keys; at most 200 of them. */
export function diffOf(before: unknown, after: unknown): readonly DataChange[] {
  const changes: DataChange[] = []
  compare(before, after, [], changes)
  return changes
}

function compare(before: unknown, after: unknown, path: readonly string[], changes: DataChange[]): void {
  // A value that is not there is another thing than null.
  const isSame = (before === undefined) === (after === undefined) && isEqual(before, after)
  if (changes.length >= CHANGES_MAX || isSame) return
  if (!isRecord(before) || !isRecord(after) || path.length >= DEPTH_MAX) {
    const kind = before === undefined ? 'added' : after === undefined ? 'removed' : 'changed'
    changes.push({
      path,
      kind,
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
    })
    return
  }
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    compare(own(before, key), own(after, key), [...path, key], changes)
  }
}

function own(record: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isAnyNumber(value)
}

/** The steps of a job that changed its data, oldest first, from what its events say that the data was. */
export function dataSteps(events: readonly HistoryBody[]): readonly DataStep[] {
  const steps: DataStep[] = []
  let before: unknown = {}
  for (const { event_id: id, event_type: event, timestamp: at, state, context_snapshot: snapshot } of events) {
    const after = isRecord(snapshot) ? snapshot['state_history'] : undefined
    if (after === undefined) continue
    const changes = diffOf(before, after)
    before = after
    if (changes.length === 0) continue
    const isCut = isRecord(snapshot) && snapshot['truncated'] !== undefined
    steps.push({ id, at, state: state ?? '', event, changes, isCut })
  }
  return steps
}
