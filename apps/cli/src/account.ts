import type { Account, Dashboard } from '@impresario/client'
import { EXIT } from './failure.ts'
import { paintStatus, printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { done, withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { facts, table } from './table.ts'
import { localTime } from './time.ts'

export function showAccount(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const account = await client.account()
    if (screen.isJson) printJson(screen, account)
    else screen.out(accountPage(screen, account))
    return EXIT.ok
  })
}

function accountPage(screen: Screen, { clientId: id, role, plan, quota, limits }: Account): string {
  const { requests } = limits
  return facts(screen, [
    ['client', id],
    ['role', role],
    ['plan', plan ?? undefined],
    ['jobs', quota === null ? 'no quota' : `${quota.used} of ${quota.limit} in ${quota.period}, ${quota.left} left`],
    ['renews', quota === null ? undefined : localTime(Date.parse(quota.renewsAt) / 1_000)],
    ['requests', requests === null ? 'no limit' : `${requests.limit} in ${requests.periodSeconds} s`],
    ['body', `${limits.bodyBytes} bytes at most`],
  ])
}

export function setLogLevel(level: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const changed = await client.admin.setLogLevel(level)
    return done(
      screen,
      `The level of the log is ${changed.level} (it was ${changed.before}), until the next start.`,
      changed,
    )
  })
}

export function reload(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const reloaded = await client.admin.reload()
    const { clients, workers, schedules, scope } = reloaded
    const counts = [counted(clients, 'client'), counted(workers, 'worker'), counted(schedules, 'schedule')]
    const others = scope === 'all_instances' ? ' The other instances do the same with their files.' : ''
    return done(screen, `Reloaded: ${counts.join(', ')}.${others}`, reloaded)
  })
}

function counted(count: number, word: string): string {
  return `${count} ${count === 1 ? word : `${word}s`}`
}

/** How many workers and jobs there are. */
export function showStatus(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const dashboard = await client.dashboard()
    if (screen.isJson) {
      printJson(screen, dashboard)
      return EXIT.ok
    }
    // `queued` is another word for `pending`.
    const { queued: _, ...jobs } = dashboard.jobs
    const { total, ...workers } = dashboard.workers
    screen.out(`${screen.paint('bold', 'Workers')}  ${total}`)
    if (total > 0) screen.out(countTable(screen, workers))
    const sum = Object.values(jobs).reduce((all, count) => all + count, 0)
    screen.out(`\n${screen.paint('bold', 'Jobs')}  ${sum}`)
    if (sum > 0) screen.out(countTable(screen, jobs))
    for (const line of historyLines(dashboard.history)) screen.out(`\n${screen.paint('red', line)}`)
    return EXIT.ok
  })
}

/** Only what needs attention; the server shows it to admins. */
function historyLines(history: Dashboard['history']): readonly string[] {
  if (history === undefined) return []
  const { isAway, waiting, dropped } = history
  return [
    ...(isAway ? [`The database of the history does not answer: ${waiting} events wait.`] : []),
    ...(dropped > 0 ? [`${dropped} events of the history were lost since the server started; its log says why.`] : []),
  ]
}

function countTable(screen: Screen, counts: Readonly<Record<string, number>>): string {
  return table(screen, Object.entries(counts), [
    { title: 'status', cell: ([status]) => paintStatus(screen, status) },
    { title: 'count', cell: ([, count]) => String(count), align: 'right' },
  ])
}
