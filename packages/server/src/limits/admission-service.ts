import { getHeapStatistics } from 'node:v8'
import type { Log } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import { Admission } from './admission.ts'
import type { AdmissionBounds } from './admission.ts'
import { HeapGauge } from '../runtime/heap-gauge.ts'
import { LoadShedding } from './load-shedding.ts'
import { LoopGauge } from '../runtime/loop-gauge.ts'
import type { PageBounds } from '../http/page-gate.ts'

export interface AdmissionService {
  readonly admission: Admission
  readonly shedding: LoadShedding
  /** Whether the event loop is late, were it for a moment. */
  readonly isBusy: () => boolean
  start(): void
  stop(): void
}

const MB = 1_048_576
/** Of the heap, for the data of jobs that are being started; and as much for bodies as they arrive. */
const SHARE = 1 / 8

/** By the memory that the process may use (`--max-old-space-size`). */
export function admissionBounds(waitMsMax: number, heapBytes = getHeapStatistics().heap_size_limit): AdmissionBounds {
  const bytes = Math.min(Math.max(heapBytes * SHARE, 16 * MB), 256 * MB)
  return { jobBytesMax: bytes, bodyBytesMax: bytes, waitMsMax }
}

const PAGE_WAIT_MS = 5_000
const PAGE_YIELD_MS = 1_000
/** Ten thousand polls. */
const WAITS_BYTES_MIN = 64 * MB
/** A loop that is later than this has other things to do than long pages. */
const BUSY_MS = 250
/** A page that is being made, at the worst: its text twice, and the records of one piece of it. */
const PAGE_BYTES = 32 * MB

/** The same for lists that are read. */
export function pageBounds(heapBytes = getHeapStatistics().heap_size_limit): PageBounds {
  const { bodyBytesMax } = admissionBounds(0, heapBytes)
  const pagesMax = Math.min(Math.max(Math.floor((heapBytes * SHARE) / PAGE_BYTES), 2), 16)
  const unreadBytesMax = Math.min(bodyBytesMax, LIMITS.answersBytesMax)
  return { pagesMax, unreadBytesMax, waitMs: PAGE_WAIT_MS, yieldMs: PAGE_YIELD_MS }
}

/** The same for requests that wait. They stay for minutes, and there may be one of each worker. */
export function waitsBytesMax(heapBytes = getHeapStatistics().heap_size_limit): number {
  return Math.min(Math.max(heapBytes / 4, WAITS_BYTES_MIN), LIMITS.waitsBytesMax)
}

/** Before its start and after its stop it refuses for bytes only. */
export function createAdmission(waitMsMax: number, log: Log, bounds: Partial<AdmissionBounds> = {}): AdmissionService {
  // Half of it: a request waits for the loop when it comes, and again when it is answered.
  const now = (): number => performance.now()
  const shedding = new LoadShedding(waitMsMax / 4)
  const loop = new LoopGauge(waitMsMax / 2, now, (sinceMs) => {
    shedding.beat(sinceMs)
    admission.noteRefused(shedding.takeRefused())
  })
  const heap = new HeapGauge()
  const admission = new Admission({ bounds: { ...admissionBounds(waitMsMax), ...bounds }, now, log, loop, heap })
  return {
    admission,
    shedding,
    isBusy: () => loop.lateMs > BUSY_MS,
    start: () => {
      loop.start()
      heap.start()
    },
    stop: () => {
      loop.stop()
      heap.stop()
    },
  }
}
