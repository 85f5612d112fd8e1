import type { System, TaskQueue, WorkerExplanation } from '@impresario/client'
import { EXIT } from './failure.ts'
import { paintStatus, printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { facts, table } from './table.ts'
import { ago, localTime, nowSeconds } from './time.ts'

/** What the server is: versions, storage, instances, leads, limits. */
export function showSystem(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const system = await client.admin.system()
    if (screen.isJson) printJson(screen, system)
    else screen.out(systemPage(screen, system))
    return EXIT.ok
  })
}

const PROMISES = {
  always: 'what was acknowledged survives a power cut',
  everysec: 'up to two seconds of what was acknowledged may be lost with the machine',
  none: 'a crash may lose what was acknowledged',
  unknown: 'the database does not tell whether what was acknowledged survives a crash',
} as const

function systemPage(screen: Screen, system: System): string {
  const { storage } = system
  const now = nowSeconds()
  const head = facts(screen, [
    ['version', system.version],
    ['Node.js', system.nodeVersion],
    ['platform', system.platform],
    ['time zone', `${system.timeZone}, data ${system.timeZoneData ?? 'unknown'}`],
    ['storage', `${storage.kind}, ${storage.address}`],
    ['promise', PROMISES[storage.promise]],
    ...storage.doubts.map((doubt) => ['', doubt] as const),
  ])
  const instances = table(screen, system.instances, [
    { title: 'instance', cell: ({ instanceId, isThis }) => `${instanceId}${isThis ? ' (this one)' : ''}` },
    { title: 'status', cell: ({ status }) => paintStatus(screen, status) },
    { title: 'version', cell: ({ version }) => version },
    { title: 'started', cell: ({ startedAt }) => localTime(startedAt) },
    { title: 'seen', cell: ({ lastSeenAt }) => ago(lastSeenAt, now) },
    { title: 'leads', cell: ({ leads }) => leads.join(', ') },
  ])
  const limits = facts(
    screen,
    Object.entries(system.limits).map(([name, limit]) => [wordsOf(name), limitText(limit)] as const),
  )
  return `${head}\n\n${instances}\n\n${screen.paint('bold', 'Limits')}\n${limits}`
}

function wordsOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}

function limitText(limit: System['limits'][keyof System['limits']]): string {
  if (limit === null) return 'none'
  return typeof limit === 'number' ? String(limit) : `${limit.limit} in ${limit.periodSeconds} s`
}

export function listClients(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const clients = await client.admin.clients()
    if (screen.isJson) printJson(screen, clients)
    else if (clients.length === 0) screen.out('There are no clients. They are kept in the file CLIENTS_CONFIG_PATH.')
    else {
      const rows = table(screen, clients, [
        { title: 'client', cell: ({ clientId }) => clientId },
        { title: 'role', cell: ({ role }) => role },
        { title: 'plan', cell: ({ plan }) => plan ?? '' },
        { title: 'jobs a month', cell: ({ monthlyAttempts: most }) => String(most ?? 'no limit'), align: 'right' },
        { title: 'tokens', cell: ({ tokens }) => String(tokens), align: 'right' },
      ])
      screen.out(rows)
    }
    return EXIT.ok
  })
}

export function listQueues(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const queues = await client.queues()
    if (screen.isJson) printJson(screen, queues)
    else if (queues.length === 0) screen.out('Nothing waits, and nothing came or went in the last minute.')
    else screen.out(queueTable(screen, queues))
    return EXIT.ok
  })
}

function queueTable(screen: Screen, queues: readonly TaskQueue[]): string {
  const number = (count: number | null): string => (count === null ? '' : String(count))
  return table(screen, queues, [
    { title: 'waiting', cell: ({ waiting, isExact }) => `${waiting}${isExact ? '' : '+'}`, align: 'right' },
    {
      title: 'oldest',
      cell: ({ oldestSeconds }) => (oldestSeconds === null ? '' : `${Math.round(oldestSeconds)} s`),
      align: 'right',
    },
    { title: 'task', cell: ({ taskType }) => taskType ?? '' },
    { title: 'worker', cell: ({ worker }) => worker ?? '' },
    { title: 'in/min', cell: ({ placedPerMinute }) => number(placedPerMinute), align: 'right' },
    { title: 'out/min', cell: ({ takenPerMinute }) => number(takenPerMinute), align: 'right' },
    {
      title: 'needs',
      cell: ({ requirements }) => (requirements === null ? '' : JSON.stringify(requirements)),
    },
  ])
}

export function explainWorker(workerId: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const explanation = await client.explainWorker(workerId)
    if (screen.isJson) printJson(screen, explanation)
    else screen.out(explanationPage(screen, explanation))
    return EXIT.ok
  })
}

function explanationPage(screen: Screen, { workerId, getsTasks, reasons, waiting }: WorkerExplanation): string {
  const head = getsTasks ? `${workerId} can get the next task.` : `${workerId} gets no tasks.`
  const why = reasons.map(({ message }) => `  ${message}`)
  const parts = [screen.paint('bold', head), ...why]
  if (waiting === null || waiting.length === 0) return parts.join('\n')
  const rows = table(screen, waiting, [
    { title: 'waiting', cell: (one) => `${one.waiting}${one.isExact ? '' : '+'}`, align: 'right' },
    { title: 'task', cell: (one) => one.taskType },
    { title: 'fits', cell: ({ fits }) => (fits ? 'yes' : 'no') },
    { title: 'why not', cell: (one) => one.reasons.join(' ') },
  ])
  return `${parts.join('\n')}\n\n${rows}`
}
