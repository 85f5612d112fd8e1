import { ImpresarioError } from '@impresario/protocol'
import type { Data, DataObject } from '@impresario/protocol'
import { refused } from '../pipeline/problem.ts'
import type { Actor } from './audit.ts'
import type { AutomationRecord } from './record.ts'

export function mustFire({ definition, next, status }: AutomationRecord): void {
  if (status !== 'active' || next !== undefined) return
  if (definition.triggers.every(({ kind }) => kind === 'time')) {
    throw refused('triggers', 'It never fires after now. Give a time that is still to come.')
  }
}

export function canceled({ id }: AutomationRecord): ImpresarioError {
  return new ImpresarioError('CONFLICT', `The automation ${id} was canceled for good. Create a new one.`)
}

export function notActive({ id, status }: AutomationRecord): ImpresarioError {
  return new ImpresarioError('CONFLICT', `The automation ${id} is ${status}. Resume it first.`)
}

export function tooManyConflicts(): ImpresarioError {
  return new ImpresarioError(
    'STORAGE_UNAVAILABLE',
    'The automation could not be written: others changed it all the time.',
  )
}

/** Whether the newest change is the one that is asked for once more. */
export function isSameChange(record: AutomationRecord, body: DataObject, actor: Actor, expected: number): boolean {
  const { revision, updatedBy, given } = record
  return revision === expected + 1 && updatedBy === actor.id && isSame(given, body)
}

/** Whether two were asked for by the same author, in the same words: a creation that is repeated because its answer was lost. */
export function isSameWish(one: AutomationRecord, other: AutomationRecord): boolean {
  return one.createdBy === other.createdBy && one.revision === 1 && isSame(one.given, other.given)
}

export function staleRevision({ id, revision, updatedBy }: AutomationRecord, expected: number): ImpresarioError {
  return new ImpresarioError(
    'STALE_REVISION',
    `The automation ${id} is at revision ${revision}, not ${expected}: ${updatedBy} changed it. Read it again, and send the change with that revision.`,
  )
}

/** The order of fields means nothing. */
function isSame(one: Data | undefined, other: Data | undefined): boolean {
  if (!isWhole(one) || !isWhole(other)) return Object.is(one, other)
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const left: readonly [string, Data][] = Object.entries(one)
  const right = new Map<string, Data>(Object.entries(other))
  return left.length === right.size && left.every(([key, value]) => right.has(key) && isSame(value, right.get(key)))
}

function isWhole(value: Data | undefined): value is DataObject | readonly Data[] {
  return typeof value === 'object' && value !== null
}
