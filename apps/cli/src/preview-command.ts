import { Option } from 'commander'
import type { Command } from 'commander'
import { act } from './action.ts'
import type { End } from './action.ts'
import { number } from './arguments.ts'
import type { PreviewOptions } from './preview.ts'

const PREVIEW_HELP = `
Nothing is asked of a server. A time without an offset is local time in --timezone. Without --after, a rule is shown from its
beginning and a cron expression from now on. See docs/reference/recurrence.md.

  impresario preview --cron '0 9 * * 1-5' --timezone Europe/Chisinau
  impresario preview --rrule 'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17' --timezone Europe/Chisinau
  impresario preview --rrule 'FREQ=DAILY' --dtstart 2026-03-27T02:30:00 --exdate 2026-03-28T02:30:00 --timezone Europe/Berlin
  impresario preview --once 2026-12-25T09:00:00+02:00 --json`

/** Shows when something will happen, before it is set up. */
export function addPreview(program: Command, end: End): void {
  const each = (text: string, before: readonly string[]): readonly string[] => [...before, ...text.split(',')]
  program
    .command('preview')
    .description('show the next times of a cron expression, a recurrence rule or a single time')
    .option('--cron <expression>', "five fields, or six with seconds: '0 9 * * 1-5'")
    .option('--rrule <rule>', "a recurrence rule of RFC 5545: 'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17'")
    .option('--once <time>', 'a single time; an offset takes precedence over --timezone')
    .option('--dtstart <time>', 'start of the rule (default: now)')
    .addOption(new Option('--exdate <time>', 'a time or day to leave out; can be repeated').argParser(each).default([]))
    .addOption(new Option('--rdate <time>', 'a time to add; can be repeated').argParser(each).default([]))
    .option('--timezone <zone>', 'time zone', 'UTC')
    .option('--after <time>', 'show times after this one')
    .addOption(new Option('--count <number>', 'maximum number of results').argParser(number).default(5))
    .addOption(
      new Option('--gap <rule>', 'what happens to times that a clock change skips').choices(['first', 'shift', 'drop']),
    )
    .option('--exclude <file>', 'iCalendar file with times to exclude')
    .option('--only <file>', 'iCalendar file with the only allowed times')
    .addHelpText('after', PREVIEW_HELP)
    .action(act(end, async (options: PreviewOptions) => (await import('./preview.ts')).showPreview(options)))
}
