import type { HistoryEvent } from '@impresario/client'
import { EXIT } from './failure.ts'
import { jobIdOf } from './job-prefix.ts'
import { printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { table } from './table.ts'
import { localTime, span } from './time.ts'

export interface HistoryOptions extends GlobalOptions {
  readonly limit?: number
}

/** What has happened to a job, oldest first. */
export function showHistory(given: string, options: HistoryOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const events = await client
      .job(await jobIdOf(client, given))
      .history()
      .all(options.limit)
    if (screen.isJson) printJson(screen, events)
    else screen.out(events.length === 0 ? 'There is no history.' : historyPage(screen, events))
    return EXIT.ok
  })
}

/** What handlers and workers wrote about a job, oldest first. */
export function showLog(given: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const lines = await client.job(await jobIdOf(client, given)).log()
    if (screen.isJson) printJson(screen, lines)
    else if (lines.length === 0) screen.out('The log is empty.')
    else {
      const rows = table(screen, lines, [
        { title: 'time', cell: ({ timestamp }) => localTime(timestamp) },
        { title: 'level', cell: ({ level }) => level },
        { title: 'by', cell: ({ state, workerId }) => workerId ?? state ?? '' },
        { title: 'message', cell: ({ message }) => message },
        { title: 'fields', cell: ({ fields }) => (fields === undefined ? '' : JSON.stringify(fields)) },
      ])
      screen.out(rows)
    }
    return EXIT.ok
  })
}

function historyPage(screen: Screen, events: readonly HistoryEvent[]): string {
  const begin = events[0]?.timestamp ?? 0
  const rows = table(screen, events, [
    { title: 'after', cell: (event) => `+${span(event.timestamp - begin)}`, align: 'right' },
    { title: 'state', cell: (event) => event.state ?? '' },
    { title: 'what', cell: (event) => event.eventType.replaceAll('_', ' ') },
    { title: 'worker', cell: (event) => event.workerId ?? '' },
    {
      title: 'took',
      cell: (event) => (event.durationMs === null ? '' : span(event.durationMs / 1_000)),
      align: 'right',
    },
    { title: 'note', cell: (event) => event.note ?? '' },
  ])
  return `${screen.paint('dim', `since ${localTime(begin)}`)}\n${rows}`
}
