/* Spans of time that several packages count with. Days of the calendar may be longer or shorter. */

export const SECOND_MS = 1_000
export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000
