const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const UNITS_BYTES: Readonly<Record<string, number>> = {
  '': 1, b: 1, kb: 1_000, mb: 1_000_000, gb: 1_000_000_000, kib: 1_024, mib: 1_048_576, gib: 1_073_741_824,
} // prettier-ignore

/** `30s`, `5m`, `1m30s`: milliseconds, or nothing when it is no span. */
export function spanMs(text: string): number | undefined {
  const trimmed = text.trim()
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(trimmed)) return undefined
  let total = 0
  for (const [, digits = '', unit = ''] of trimmed.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    total += Number(digits) * (UNITS_MS[unit] ?? 0)
  }
  return total
}

/** `100MB`, `64KiB`, `1000`: bytes, or nothing when it is no size. */
export function sizeBytes(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim()) ?? []
  const factor = UNITS_BYTES[unit.toLowerCase()]
  return digits === undefined || factor === undefined ? undefined : Math.round(Number(digits) * factor)
}
