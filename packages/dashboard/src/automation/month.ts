/** The first day of the month that an address names (`2026-11`), or of this one. */
export function monthOf(text: string | undefined, now: Date): Date {
  const { year, month } = /^(?<year>\d{4})-(?<month>0[1-9]|1[0-2])$/.exec(text ?? '')?.groups ?? {}
  return year === undefined
    ? new Date(now.getFullYear(), now.getMonth(), 1)
    : new Date(Number(year), Number(month) - 1, 1)
}

export function shiftedMonth(month: Date, by: number): string {
  const other = new Date(month.getFullYear(), month.getMonth() + by, 1)
  return `${other.getFullYear()}-${String(other.getMonth() + 1).padStart(2, '0')}`
}

/** Whole weeks from Monday on that hold the month. Days are counted by the calendar: some have 23 or 25 hours. */
export function monthDays(month: Date): readonly Date[] {
  const before = (month.getDay() + 6) % 7
  const length = new Date(month.getFullYear(), month.getMonth() + 1, 0).getDate()
  return Array.from(
    { length: Math.ceil((before + length) / 7) * 7 },
    (_, index) => new Date(month.getFullYear(), month.getMonth(), 1 - before + index),
  )
}

/** One text for each day in the viewer's zone. */
export function dayKey(day: Date): string {
  return `${day.getFullYear()}-${day.getMonth() + 1}-${day.getDate()}`
}
