import { ImpresarioError } from '@impresario/protocol'

const UNITS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])
/** Timers keep 32 bits in places; two years are longer than any job should wait for one thing. */
export const SPAN_MS_MAX = 2 * 365 * 86_400_000

/** Milliseconds of a span such as `1500`, `'30s'` or `'10m'`. `place` names it in the refusal. */
export function durationMs(span: number | string, place: string): number {
  const ms = typeof span === 'number' ? span : parse(span)
  if (Number.isFinite(ms) && ms >= 0 && ms <= SPAN_MS_MAX) return Math.round(ms)
  throw new ImpresarioError(
    'INVALID_BLUEPRINT',
    `${place} is ${JSON.stringify(span)}. Give milliseconds, or a number with its unit such as '500ms', '30s', '10m', '2h', '7d'.`,
  )
}

function parse(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text)
  const [, count, unit] = match ?? []
  return Number(count) * (UNITS.get(String(unit)) ?? Number.NaN)
}
