/** The offset of a zone at an instant, read from `Intl` in another way than `Zone` does it. */
export function intlClock(timeZone: string): (at: number) => number {
  // In Swedish a time is 2026-03-29 02:30:00.
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
  return (at) => Date.parse(`${format.format(at).replace(' ', 'T')}Z`) - Math.floor(at / 1_000) * 1_000
}
