import { isAnyNumber } from '@impresario/protocol'

/** An automation while it is written. What the form has no field for stays as it is. */
export type Draft = Readonly<Record<string, unknown>>

export const NEW_DRAFT: Draft = {
  title: '',
  timezone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
  triggers: [{ cron: '0 9 * * 1-5' }],
  pipeline: [{ id: 'step_1', uses: 'log', with: { message: '' } }],
}

export function isDraft(value: unknown): value is Draft {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function partsOf(draft: Draft, name: string): readonly Draft[] {
  const value = draft[name]
  return Array.isArray(value) ? value.filter(isDraft) : []
}

export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return isAnyNumber(value) || typeof value === 'boolean' ? String(value) : ''
}

/** With other fields; what is undefined or empty is left out. */
export function changed(draft: Draft, change: Draft): Draft {
  const all = { ...draft, ...change }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined && value !== ''))
}

export function replacedAt<T>(list: readonly T[], at: number, value: T): readonly T[] {
  return list.map((one, index) => (index === at ? value : one))
}

export function movedAt<T>(list: readonly T[], at: number, by: -1 | 1): readonly T[] {
  const [one, other] = [list[at], list[at + by]]
  if (one === undefined || other === undefined) return list
  return list.map((each, index) => (index === at ? other : index === at + by ? one : each))
}

/** An id that no other step has. */
export function freshId(steps: readonly Draft[], prefix: string, ids: readonly string[]): string {
  const taken = new Set(ids)
  let number = steps.length + 1
  while (taken.has(`step_${prefix}${number}`)) number += 1
  return `step_${prefix}${number}`
}

/** A number where the text is one; a template stays text. */
export function numberOrText(text: string): number | string | undefined {
  if (text.trim() === '') return undefined
  const number = Number(text)
  return Number.isFinite(number) ? number : text
}
