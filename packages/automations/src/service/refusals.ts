import { ImpresarioError } from '@impresario/protocol'
import { refused } from '../pipeline/problem.ts'
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
