import type { WorkerEvent } from '@impresario/client'
import { EXIT } from './failure.ts'
import { printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { table } from './table.ts'
import { ago, localTime, nowSeconds } from './time.ts'

export interface WorkerHistoryOptions extends GlobalOptions {
  readonly limit: number
}

const PAGE = 1_000

/** What has happened to a worker, newest first. */
export function showWorkerHistory(workerId: string, options: WorkerHistoryOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { limit } = options
    const events = await client.workerHistory(workerId, { limit: Math.min(limit, PAGE) }).all(limit)
    if (screen.isJson) printJson(screen, events)
    else screen.out(events.length === 0 ? 'There is no history.' : historyTable(screen, events))
    return EXIT.ok
  })
}

function historyTable(screen: Screen, events: readonly WorkerEvent[]): string {
  const now = nowSeconds()
  return table(screen, events, [
    { title: 'when', cell: (event) => localTime(event.timestamp) },
    { title: '', cell: (event) => ago(event.timestamp, now), align: 'right' },
    { title: 'what', cell: (event) => event.eventType.replaceAll('_', ' ') },
    { title: 'note', cell: (event) => event.note ?? '' },
  ])
}
