import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import {
  Zones,
  calendar,
  importIcs,
  isoInstant,
  parseMoment,
  preview,
  trigger,
  withImpliedStart,
} from '@impresario/recurrence'
import type { Calendar, Firing, Gap, LeftOut, Preview, TriggerSpec, Zone } from '@impresario/recurrence'
import { calendarText } from './calendar-file.ts'
import { whyUnread } from './arguments.ts'
import { EXIT, Failure, usage } from './failure.ts'
import { printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { screenFor } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { table } from './table.ts'

export interface PreviewOptions extends GlobalOptions {
  readonly cron?: string
  readonly rrule?: string
  readonly once?: string
  readonly dtstart?: string
  readonly exdate: readonly string[]
  readonly rdate: readonly string[]
  readonly timezone: string
  readonly after?: string
  readonly count: number
  readonly gap?: Gap
  readonly exclude?: string
  readonly only?: string
}

const COUNT_MAX = 10_000

/** Prints the next times of what was given, without a server. */
export async function showPreview(options: PreviewOptions): Promise<number> {
  const { count } = options
  if (!Number.isInteger(count) || count < 0 || count > COUNT_MAX) throw usage(`--count must be from 0 to ${COUNT_MAX}.`)
  const zones = new Zones()
  const zone = zones.named(options.timezone)
  const now = Date.now()
  const after = options.after === undefined ? undefined : instantOf(options.after, zone)
  const made = trigger(specOf(options, zone, after ?? now), zones)
  const restriction = {
    exclude: await calendarsIn(options.exclude, zones, zone),
    only: await calendarsIn(options.only, zones, zone),
  }
  const isEndless = made.kind === 'cron' || (made.kind === 'rrule' && options.dtstart === undefined)
  const from = after ?? (isEndless ? now : Number.NEGATIVE_INFINITY)
  const shown = preview({ triggers: [made], restriction, after: from, count })
  const screen = screenFor(options)
  if (screen.isJson) printJson(screen, asJson(shown))
  else screen.out(page(screen, shown))
  return EXIT.ok
}

/** `--after`: local time counts in the zone. */
function instantOf(text: string, zone: Zone): number {
  const moment = parseMoment('after', text)
  if (moment.kind === 'instant') return moment.at
  const local = moment.kind === 'local' ? moment.local : moment.dayNo * 86_400_000
  return zone.instantOf(local, { gap: 'shift', fold: 'first' })
}

function specOf(options: PreviewOptions, zone: Zone, now: number): TriggerSpec {
  const { cron, rrule, once, dtstart, exdate, rdate, timezone, gap } = options
  const given = [cron, rrule, once].filter((one) => one !== undefined).length
  if (given !== 1) throw usage('Use exactly one of --cron, --rrule and --once.', 'For example: --cron "0 9 * * 1-5".')
  if (rrule === undefined && (dtstart !== undefined || exdate.length + rdate.length > 0)) {
    throw usage('--dtstart, --exdate and --rdate go with --rrule only.')
  }
  if (cron !== undefined) return { kind: 'cron', cron, timezone, gap }
  if (once !== undefined) return { kind: 'once', at: once, timezone }
  const rule = dtstart === undefined ? withImpliedStart(rrule ?? '', now, zone) : { rrule: rrule ?? '', dtstart }
  return { kind: 'rrule', ...rule, exdates: exdate, rdates: rdate, timezone, gap }
}

async function calendarsIn(file: string | undefined, zones: Zones, zone: Zone): Promise<readonly Calendar[]> {
  if (file === undefined) return []
  const bytes = await readFile(file).catch((error: unknown) => {
    throw usage(`The calendar "${file}" cannot be read: ${whyUnread(error)}.`)
  })
  const { entries, problems } = importIcs(calendarText(bytes), zones)
  const [problem] = problems
  if (problem !== undefined) throw new Failure('INVALID_REQUEST', `"${file}": ${problem.message}`)
  return [calendar({ name: basename(file), entries }, zones, zone)]
}

function asJson({ words, firings, leftOut, isComplete }: Preview): object {
  return {
    times: firings.map(({ at }) => isoInstant(at)),
    words: words.join('; '),
    notes: firings.flatMap(({ at, notes }) => notes.map((note) => ({ at: isoInstant(at), note }))),
    left_out: leftOut.map(({ local, reason }) => ({ local, reason })),
    complete: isComplete,
  }
}

function page(screen: Screen, { words, firings, leftOut, isComplete, isMoreLeftOut }: Preview): string {
  const none = isComplete ? 'It never happens.' : 'Nothing of it is shown.'
  const parts = [
    words.join('\n'),
    firings.length === 0 ? none : firingTable(screen, firings),
    ...(isComplete && firings.length > 0 ? [screen.paint('dim', 'There are no more.')] : []),
    ...(leftOut.length === 0 ? [] : [`Left out:\n${leftOutTable(screen, leftOut)}`]),
    ...(isMoreLeftOut ? [screen.paint('dim', 'More than these are left out.')] : []),
  ]
  return parts.join('\n\n')
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']

function firingTable(screen: Screen, firings: readonly Firing[]): string {
  return table(screen, firings, [
    {
      title: 'local time',
      cell: ({ local }) => `${DAYS[new Date(local.slice(0, 10)).getUTCDay()]} ${local.replace('T', ' ')}`,
    },
    { title: 'utc', cell: ({ at }) => isoInstant(at) },
    { title: 'note', cell: ({ notes }) => notes.join(' ') },
  ])
}

function leftOutTable(screen: Screen, leftOut: readonly LeftOut[]): string {
  return table(screen, leftOut, [
    { title: 'local time', cell: ({ local }) => local.replace('T', ' ') },
    { title: 'why', cell: ({ reason }) => reason },
  ])
}
