import { isoLocal } from '../moment.ts'
import type { Zone } from '../zone.ts'
import { parseRule } from './parse.ts'

/**
 * A rule and the start that it gets at its creation, when nobody has given one. The start is the moment of creation, so
 * that nothing from before it is counted. What a rule leaves open is taken from its start, which would make `BYHOUR=17`
 * fire at 17:34:56: below the smallest part that is given the rule gets zeros instead.
 */
export function withImpliedStart(
  text: string,
  createdAt: number,
  zone: Zone,
): { readonly rrule: string; readonly dtstart: string } {
  const rule = parseRule(text)
  const second = Math.ceil(createdAt / 1_000) * 1_000
  const parts = [rule.text.replace(/;$/, '')]
  const hasMinutes = rule.minutes.length > 0
  const isHour = rule.hours.length > 0 && !['MINUTELY', 'SECONDLY'].includes(rule.frequency)
  if (isHour && !hasMinutes) parts.push('BYMINUTE=0')
  if ((isHour || (hasMinutes && rule.frequency !== 'SECONDLY')) && rule.seconds.length === 0) parts.push('BYSECOND=0')
  return { rrule: parts.join(';'), dtstart: isoLocal(zone.localOf(second)) }
}
