import { Worker } from 'node:worker_threads'

/** How often the main thread shows that its event loop goes on. */
const BEAT_MS = 500

/**
 * Ends the process when its event loop has stood still for too long.
 *
 * A handler that loops without end after an `await` stops everything in this process: requests, heartbeats, leases. Nothing on
 * the main thread can break it. A thread of its own sees that the loop makes no more turns, writes why to standard error, and
 * ends the process. The service manager starts it again, and the turn that never returned is counted; after three of them its
 * job is quarantined.
 *
 * Only time that the main thread itself spends computing counts. A machine that is busy, suspended or swapping does not make it
 * fire, and neither does a debugger that holds the thread.
 */
export class StallWatch {
  readonly #limitMs: number
  #timer: NodeJS.Timeout | undefined
  #thread: Worker | undefined

  /** 0 switches it off. */
  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  start(): void {
    if (this.#limitMs === 0 || this.#thread !== undefined) return
    const beats = new Int32Array(new SharedArrayBuffer(4))
    this.#timer = setInterval(() => Atomics.add(beats, 0, 1), BEAT_MS).unref()
    const workerData = { beats, limitMs: this.#limitMs, beatMs: BEAT_MS, pid: process.pid }
    // Loaders of the main program are of no use here, and some of them wait for the main thread.
    this.#thread = new Worker(PROGRAM, {
      eval: true,
      execArgv: [],
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: 16 },
    })
    this.#thread.unref()
    // Without the watch the server does its work all the same.
    this.#thread.on('error', () => {})
  }

  stop(): void {
    clearInterval(this.#timer)
    void this.#thread?.terminate()
    this.#timer = undefined
    this.#thread = undefined
  }
}

/**
 * Runs as text, so that no file has to be found from wherever the program was built to. The CPU time of the main thread stands
 * in /proc, in ticks of 10 ms; elsewhere that of the whole process is taken, in which the main thread has by far the largest part.
 */
const PROGRAM = `
const { workerData: { beats, limitMs, beatMs, pid } } = require('node:worker_threads')
const { readFileSync, writeSync } = require('node:fs')
function spentMs() {
  try {
    const stat = readFileSync('/proc/' + pid + '/task/' + pid + '/stat', 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * 10
  } catch {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
}
let seen = Atomics.load(beats, 0)
let spentThen = spentMs()
setInterval(() => {
  const now = Atomics.load(beats, 0)
  if (now !== seen) {
    seen = now
    spentThen = spentMs()
    return
  }
  const stalledMs = spentMs() - spentThen
  if (stalledMs < limitMs) return
  const message = 'The event loop has stood still for ' + Math.round(stalledMs / 1000) +
    ' s of computing: a handler is in an endless loop. The process ends, so that others can go on; the turn is counted.'
  writeSync(2, JSON.stringify({ level: 'fatal', msg: message, code: 'EVENT_LOOP_STALLED' }) + '\\n')
  process.kill(pid, 'SIGKILL')
}, beatMs)
`
