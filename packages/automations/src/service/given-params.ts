import { didYouMean } from '@impresario/core'
import { ImpresarioError, stringifyExact } from '@impresario/protocol'
import type { DataObject } from '@impresario/protocol'
import type { AutomationRecord } from './record.ts'

/** `params` read as a whole, or by a name that is only known when it runs; not the field of that name. */
const READ_WHOLE = /\bparams\b(?!":)(?!\s*\??\.\s*[\p{L}_])/u
const READ_BY_NAME = /\bparams\s*\??\.\s*(?<name>[\p{L}\p{N}_]+)/gu

/**
 * Refuses params that the automation neither has nor reads: they would change nothing, and are most likely misspelled. One that
 * has no params of its own, or whose pipeline reads them as a whole, takes any.
 */
export function mustKnowParams(
  { definition, given }: Pick<AutomationRecord, 'definition' | 'given'>,
  params: DataObject,
): void {
  const own = Object.keys(definition.params)
  const unknown = Object.keys(params).filter((name) => !own.includes(name))
  if (own.length === 0 || unknown.length === 0) return
  const { params: _, ...rest } = given
  const text = stringifyExact(rest)
  if (READ_WHOLE.test(text)) return
  const known = new Set([...own, ...[...text.matchAll(READ_BY_NAME)].map(({ groups }) => groups?.['name'] ?? '')])
  const wrong = unknown.find((name) => !known.has(name))
  if (wrong === undefined) return
  const names = [...known].map((name) => `"${name}"`).join(', ')
  const hint = didYouMean(wrong, known) || ` It has ${names}.`
  throw new ImpresarioError(
    'INPUT_REFUSED',
    `The automation has no param "${wrong.slice(0, 100)}".${hint.slice(0, 1_000)}`,
  )
}
