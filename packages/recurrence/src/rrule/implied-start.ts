import { isoLocal } from '../moment.ts'
import type { Zone } from '../zone.ts'
import { parseRule } from './parse.ts'

/**
 * A rule and its default start, used when no start is given. The start is the moment of creation, so that nothing
 * before it is counted. Parts that a rule leaves open are taken from its start, which would make `BYHOUR=17` fire at
 * 17:34:56: all parts below the smallest given one are set to zero instead.
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
