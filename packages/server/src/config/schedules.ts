import { CATCH_UP_DEFAULT, SCHEDULER_CLIENT } from '@impresario/core'
import type { Misfire, Schedule, Trigger } from '@impresario/core'
import type { EngineSettings, Scheduler } from '@impresario/engine'
import { isImpresarioError } from '@impresario/protocol'
import { Zone } from '@impresario/recurrence'
import { mustBeWebhookUrl } from '@impresario/webhooks'
import type { OutboundPolicy } from '@impresario/webhooks'
import type { BackgroundSettings } from './background-keys.ts'
import { invalid } from './config.ts'
import type { Settings } from './config.ts'
import { TableReader, tablesIn, tomlJson } from './table-reader.ts'
import type { Table } from './table-reader.ts'

export interface ScheduleFileOptions {
  /** The time zone of schedules that name none. */
  readonly timeZone: string
  /** Throws for an address that webhooks are not sent to. */
  readonly checkWebhook: (url: string) => void
  /** Whether there is this client; without it, any may be named. */
  readonly isClient?: IsClient | undefined
}

export type IsClient = (clientId: string) => boolean

const KEYS: ReadonlySet<string> = new Set([
  'blueprint',
  'input_data',
  'initial_data',
  'enabled',
  'interval_seconds',
  'daily_at',
  'weekly_days',
  'monthly_dates',
  'time',
  'timezone',
  'dispatch_timeout',
  'result_timeout',
  'priority',
  'metadata',
  'client',
  'misfire',
  'catch_up_max',
  'webhook_url',
])

const DAY_S = 86_400
const INTERVAL_S_MAX = 366 * DAY_S
const TIMEOUT_S_MAX = 30 * DAY_S
/** Each firing that is made good is a job of its own, and all of them start at once. */
const CATCH_UP_MAX = 100
const MISFIRES: readonly Misfire[] = ['skip', 'run_once', 'catch_up']
const WEEKDAYS: readonly string[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
const WEEKDAYS_LONG: readonly string[] = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']
const TRIGGERS = ['interval_seconds', 'daily_at', 'weekly_days', 'monthly_dates'] as const

/** Reads `schedules.toml`. Refuses the whole file, by table and key, for anything in it that cannot work. */
export function loadSchedules(path: string, options: ScheduleFileOptions): readonly Schedule[] {
  if (path === '') return []
  const found: Schedule[] = []
  for (const [name, table] of tablesIn(path, 'nightly_report')) {
    found.push(readSchedule(new TableReader(`${path}: [${name}]`, table), name, options))
  }
  return found
}

/** The schedules of a server: only to addresses that its webhooks may go to. */
export function readSchedules(
  { schedulesConfigPath, timeZone }: Pick<Settings, 'schedulesConfigPath' | 'timeZone'>,
  policy: OutboundPolicy,
  isClient?: IsClient,
): readonly Schedule[] {
  const checkWebhook = (url: string): void => mustBeWebhookUrl(url, policy)
  return loadSchedules(schedulesConfigPath, { timeZone, checkWebhook, isClient })
}

/** What is set for background processes, in the words of the engine. */
export function backgroundSettings(settings: BackgroundSettings): Partial<EngineSettings> {
  return {
    leaderLeaseMs: settings.leaderLeaseSeconds * 1_000,
    turnWaitMsMax: settings.overloadTurnWaitSeconds * 1_000,
    workerForgetMs: settings.workerForgetSeconds * 1_000,
    reputationMs: settings.reputationIntervalSeconds * 1_000,
    reputationFlushMs: settings.reputationFlushSeconds * 1_000,
    reputationMin: settings.reputationMinThreshold,
    reputationRules: {
      violationPenalty: settings.reputationPenaltyContractViolation,
      failurePenalty: settings.reputationPenaltyTaskFailure,
      successReward: settings.reputationRewardSuccess,
    },
  }
}

/** Lets the schedules of a file run. What the engine refuses of them is told with the place in the file. */
export async function applySchedules(
  scheduler: Scheduler,
  path: string,
  schedules: readonly Schedule[],
): Promise<void> {
  try {
    await scheduler.replace(schedules)
  } catch (error) {
    if (!isImpresarioError(error, 'INVALID_CONFIGURATION')) throw error
    const { schedule, key } = error.details
    if (schedule === undefined) throw error
    throw invalid(`${path}: [${schedule}]${key === undefined ? '' : `.${key}`}: ${error.message}`, error)
  }
}

function readSchedule(reader: TableReader, name: string, options: ScheduleFileOptions): Schedule {
  const { timeZone, checkWebhook, isClient } = options
  reader.refuseUnknown(KEYS, 'A schedule')
  const trigger = readTrigger(reader)
  const misfire = reader.choice('misfire', MISFIRES) ?? 'run_once'
  const catchUpMax = reader.number('catch_up_max', { min: 1, max: CATCH_UP_MAX, isWhole: true })
  if (catchUpMax !== undefined && misfire !== 'catch_up') {
    throw reader.refusal('catch_up_max', 'counts only with misfire = "catch_up". Set that, or leave it out.')
  }
  const data = readData(reader)
  const dispatchTimeout = reader.number('dispatch_timeout', { min: 0.001, max: TIMEOUT_S_MAX })
  const resultTimeout = reader.number('result_timeout', { min: 0.001, max: TIMEOUT_S_MAX })
  return {
    name,
    blueprint: reader.required('blueprint', 'the name of a blueprint'),
    initialData: tomlJson(data),
    isEnabled: reader.flag('enabled') ?? true,
    trigger,
    timeZone: readZone(reader) ?? timeZone,
    misfire,
    catchUpMax: catchUpMax ?? CATCH_UP_DEFAULT,
    clientId: readClient(reader, isClient),
    priority: reader.number('priority', { min: -1_000_000, max: 1_000_000 }),
    dispatchTimeoutMs: dispatchTimeout === undefined ? undefined : dispatchTimeout * 1_000,
    resultTimeoutMs: resultTimeout === undefined ? undefined : resultTimeout * 1_000,
    metadata: tomlJson(reader.table('metadata') ?? {}),
    webhookUrl: readWebhook(reader, checkWebhook),
  }
}

function readData(reader: TableReader): Table {
  const data = reader.table('input_data')
  const alias = reader.table('initial_data')
  if (data !== undefined && alias !== undefined) {
    throw reader.refusal('initial_data', 'is another name of input_data. Keep one of them.')
  }
  return data ?? alias ?? {}
}

/** The scheduler's own client has no token and is always there. */
function readClient(reader: TableReader, isClient: IsClient = () => true): string {
  const id = reader.text('client') ?? SCHEDULER_CLIENT
  if (id === SCHEDULER_CLIENT || isClient(id)) return id
  throw reader.refusal(
    'client',
    `is "${id}", and there is no such client. Name one of CLIENTS_CONFIG_PATH, or leave it out.`,
  )
}

function readZone(reader: TableReader): string | undefined {
  const name = reader.text('timezone')
  if (name === undefined) return undefined
  try {
    return new Zone(name).name
  } catch {
    throw reader.refusal('timezone', `is "${name}". It must be the name of a time zone, such as UTC or Europe/Berlin.`)
  }
}

function readWebhook(reader: TableReader, check: (url: string) => void): string | undefined {
  const url = reader.text('webhook_url')
  if (url === undefined) return undefined
  try {
    check(url)
  } catch (error) {
    throw reader.refusal('webhook_url', `is refused: ${error instanceof Error ? error.message : String(error)}`)
  }
  return url
}

function readTrigger(reader: TableReader): Trigger {
  const given = TRIGGERS.filter((key) => reader.has(key))
  const [kind, second] = given
  if (kind === undefined) throw reader.refusal(undefined, `has no trigger. Set one of ${TRIGGERS.join(', ')}.`)
  if (second !== undefined) throw reader.refusal(second, `and ${kind} are both there. Keep one of them.`)
  const needsTime = kind === 'weekly_days' || kind === 'monthly_dates'
  if (reader.has('time') && !needsTime) {
    throw reader.refusal('time', 'belongs to weekly_days and monthly_dates. With daily_at the time is in it.')
  }
  switch (kind) {
    case 'interval_seconds':
      // Never undefined: the key is there.
      return { kind: 'interval', everyMs: (reader.number(kind, { min: 1, max: INTERVAL_S_MAX }) ?? 1) * 1_000 }
    case 'daily_at':
      return { kind: 'daily', at: reader.time(kind) }
    case 'weekly_days':
      return {
        kind: 'weekly',
        days: reader.list(kind, weekdayOf, 'days such as ["mon", "fri"]'),
        at: reader.time('time'),
      }
    case 'monthly_dates':
      return {
        kind: 'monthly',
        dates: reader.list(kind, dateOf, 'days of the month from 1 to 31, or "last"'),
        at: reader.time('time'),
      }
  }
}

function weekdayOf(value: unknown): number | undefined {
  const word = typeof value === 'string' ? value.trim().toLowerCase() : ''
  const at = Math.max(WEEKDAYS.indexOf(word), WEEKDAYS_LONG.indexOf(word))
  return at < 0 ? undefined : at + 1
}

function dateOf(value: unknown): number | 'last' | undefined {
  if (value === 'last') return value
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 31 ? value : undefined
}
