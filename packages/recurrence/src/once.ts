import { DAY_MS } from '@impresario/protocol'
import { parseMoment } from './moment.ts'
import type { Occurrence, Series } from './series.ts'
import type { Zone } from './zone.ts'

/**
 * One point in time. An offset in the text takes precedence over the zone; without one it is a local time of the zone.
 * A time in a gap is moved by the length of the gap, a time in a fold is the first of the two: RFC 5545 §3.3.5.
 */
export function parseOnce(text: string, zone: Zone): Occurrence {
  const moment = parseMoment('once', text)
  if (moment.kind === 'instant') return { at: moment.at, local: zone.localOf(moment.at) }
  const local = moment.kind === 'local' ? moment.local : moment.dayNo * DAY_MS
  return { at: zone.instantOf(local, { gap: 'shift', fold: 'first' }), local }
}

export function onceSeries(occurrence: Occurrence): Series {
  return { next: (after) => (occurrence.at > after ? occurrence : undefined) }
}
