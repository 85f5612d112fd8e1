import { X509Certificate } from 'node:crypto'
import { readFile, statfs } from 'node:fs/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { IntervalHistogram } from 'node:perf_hooks'
import { parseLane, workerOfLane } from '@impresario/core'
import type { LaneView, Log, Queue, Storage, WorkerRecord } from '@impresario/core'
import { errorFields } from '../runtime/log.ts'
import { VERSION } from '../runtime/version.ts'
import type { Metrics } from './metrics.ts'

export interface GaugeReaderOptions {
  readonly metrics: Metrics
  readonly storage: Storage
  readonly log: Log
  readonly workers: () => Iterable<Pick<WorkerRecord, 'status'>>
  /** Tasks in the hands of workers. */
  readonly heldTasks: () => number
  readonly history: () => { readonly waiting: number; readonly dropped: number }
  /** On the disk whose space is shown; without it none is. */
  readonly dataDirectory: string | undefined
  /** The certificate of the server, if it has one. */
  readonly certificatePath: string | undefined
}

/** Prometheus asks every 15 seconds or so. */
const EVERY_MS = 5_000
const QUEUES: readonly Queue[] = ['turns', 'tasks', 'timers', 'mail', 'outbox', 'firings', 'events']

const UNLABELLED = [
  'orchestrator_security_auth_failures_total',
  'orchestrator_security_replay_detected_total',
  'orchestrator_security_identity_mismatch_total',
] as const

const SKIP_REASONS = [
  'missed',
  'merged',
  'over_max',
  'excluded',
  'paused',
  'overlap',
  'deduplicated',
  'budget',
  'cooldown',
] as const

/**
 * Reads what has to be asked for, every few seconds, so that a scrape waits for nothing. *Stopped* → `start` → *running* →
 * `stop` → *stopped*. A storage that does not respond leaves the figures as they were, and `impresario_storage_up` at 0.
 */
export class GaugeReader {
  readonly #options: GaugeReaderOptions
  #timer: NodeJS.Timeout | undefined
  #delay: IntervalHistogram | undefined
  #reading: Promise<void> | undefined

  constructor(options: GaugeReaderOptions) {
    this.#options = options
  }

  start(): void {
    if (this.#timer !== undefined) return
    const { metrics } = this.#options
    this.#delay = monitorEventLoopDelay({ resolution: 20 })
    this.#delay.enable()
    // A counter that is not there until its first event would hide that event from `rate`.
    for (const name of UNLABELLED) metrics.count(name, {}, 0)
    for (const reason of SKIP_REASONS) metrics.count('impresario_firings_skipped_total', { reason }, 0)
    metrics.set('impresario_build_info', { version: VERSION }, 1)
    metrics.set('process_start_time_seconds', {}, Math.round(performance.timeOrigin) / 1_000)
    this.#timer = setInterval(() => {
      void this.read()
    }, EVERY_MS).unref()
    void this.read()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#delay?.disable()
    await this.#reading
  }

  /** One round. A second one waits for the first. */
  read(): Promise<void> {
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readAll(): Promise<void> {
    this.#readProcess()
    this.#readWorkers()
    await this.#readDisk()
    await this.#readCertificate()
    await this.#readStorage()
  }

  #readProcess(): void {
    const { metrics, history } = this.#options
    const { rss, heapUsed } = process.memoryUsage()
    const { user, system } = process.cpuUsage()
    metrics.set('process_resident_memory_bytes', {}, rss)
    metrics.set('nodejs_heap_size_used_bytes', {}, heapUsed)
    metrics.setTotal('process_cpu_seconds_total', {}, (user + system) / 1_000_000)
    const delay = this.#delay
    if (delay !== undefined && delay.count > 0) {
      metrics.set('orchestrator_loop_lag_seconds', {}, delay.percentile(99) / 1e9)
      delay.reset()
    }
    const { waiting, dropped } = history()
    metrics.set('impresario_history_waiting', {}, waiting)
    metrics.setTotal('impresario_history_dropped_total', {}, dropped)
  }

  #readWorkers(): void {
    const { metrics, workers, heldTasks } = this.#options
    metrics.set('impresario_leases_held', {}, heldTasks())
    const byStatus = new Map<string, number>()
    let total = 0
    for (const { status } of workers()) {
      byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
      total += 1
    }
    metrics.set('orchestrator_active_workers', {}, total)
    metrics.setAll(
      'impresario_workers',
      [...byStatus].map(([status, count]) => [{ status }, count] as const),
    )
  }

  async #readDisk(): Promise<void> {
    const { metrics, dataDirectory } = this.#options
    if (dataDirectory === undefined) return
    const disk = await statfs(dataDirectory).catch(() => undefined)
    if (disk === undefined) return
    metrics.set('impresario_disk_free_bytes', {}, disk.bavail * disk.bsize)
    metrics.set('impresario_disk_size_bytes', {}, disk.blocks * disk.bsize)
  }

  async #readCertificate(): Promise<void> {
    const { metrics, certificatePath } = this.#options
    if (certificatePath === undefined) return
    const pem = await readFile(certificatePath).catch(() => undefined)
    if (pem === undefined) return
    const endsAt = Date.parse(new X509Certificate(pem).validTo)
    metrics.set('impresario_certificate_expires_timestamp_seconds', {}, endsAt / 1_000)
  }

  async #readStorage(): Promise<void> {
    const { metrics, storage, log } = this.#options
    const began = performance.now()
    try {
      const jobs = await storage.counts('job', {})
      metrics.set('impresario_storage_read_seconds', {}, (performance.now() - began) / 1_000)
      metrics.setAll(
        'impresario_jobs',
        Object.entries(jobs).map(([status, count]) => [{ status }, count] as const),
      )
      for (const queue of QUEUES) await this.#readQueue(queue)
      metrics.set('impresario_storage_up', {}, 1)
    } catch (error) {
      metrics.set('impresario_storage_up', {}, 0)
      log.debug('the figures of the storage could not be read', errorFields(error))
    }
  }

  async #readQueue(queue: Queue): Promise<void> {
    const { metrics, storage } = this.#options
    const lanes = await storage.lanes(queue)
    const waiting = lanes.reduce((sum, { ready }) => sum + ready, 0)
    metrics.set('impresario_queue_waiting', { queue }, waiting)
    metrics.set('impresario_queue_oldest_seconds', { queue }, ((await storage.oldest(queue)) ?? 0) / 1_000)
    if (queue !== 'tasks') return
    metrics.set('orchestrator_task_queue_length', {}, waiting)
    metrics.setAll('impresario_tasks_waiting', byTaskType(lanes))
  }
}

/** The longest queues by name; all further ones are one. */
const TASK_TYPES_MAX = 50

function byTaskType(lanes: readonly LaneView[]): readonly (readonly [{ readonly task_type: string }, number])[] {
  const waiting = new Map([['placed', 0]])
  for (const { lane, ready } of lanes) {
    const type = workerOfLane(lane) === undefined ? (parseLane(lane)?.type ?? 'other') : 'placed'
    waiting.set(type, (waiting.get(type) ?? 0) + ready)
  }
  const longest = [...waiting].toSorted(([, one], [, other]) => other - one)
  const rest = longest.splice(TASK_TYPES_MAX).reduce((sum, [, ready]) => sum + ready, 0)
  const all = new Map(longest)
  if (rest > 0) all.set('other', (all.get('other') ?? 0) + rest)
  return [...all].map(([type, ready]) => [{ task_type: type }, ready])
}
