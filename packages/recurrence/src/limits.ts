/** Limits of what may be requested. All outside input is bounded here. */
export const LIMITS = {
  /** Characters of a cron expression. */
  cronLength: 1_000,
  /** Characters of a recurrence rule. */
  rruleLength: 4_000,
  /** COUNT of a rule, or of all rules of a calendar: occurrences have to be counted one by one, at about a microsecond each. */
  count: 100_000,
  /** Times that may be added to a rule, and as many that may be left out. */
  dates: 5_000,
  /** Entries of a calendar. */
  entries: 5_000,
  /** Entries of a calendar that repeat: each is checked for every occurrence, at some microseconds. */
  rules: 500,
  /** Characters of an iCalendar file. */
  icsLength: 2_000_000,
  /** Events of an iCalendar file. */
  icsEvents: 5_000,
  /** Runs that `catch_up` may run late. */
  catchUp: 1_000,
  /** Firings of a preview. */
  preview: 10_000,
} as const
