import { ImpresarioError } from '@impresario/protocol'
import type { AutomationDefinition } from '../automation/definition.ts'
import { refused } from '../pipeline/problem.ts'
import type { AutomationRecord } from './record.ts'

/** A definition may ask for what this server does not do. Better to refuse it now than to run without it. */
export function mustBePossible({ budget }: AutomationDefinition): void {
  const { usdPerDay, tokensPerDay, gpuSecondsPerDay } = budget
  if (usdPerDay !== undefined || tokensPerDay !== undefined || gpuSecondsPerDay !== undefined) {
    throw refused('budget', 'Only runs_per_day is counted. Leave the others out.')
  }
}

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
