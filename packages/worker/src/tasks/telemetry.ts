import { cpus, freemem, totalmem } from 'node:os'
import type { JsonObject } from '@impresario/protocol'

export interface Usage {
  readonly cpuPercent: number
  readonly ramGb: number
}

interface Ticks {
  readonly busy: number
  readonly all: number
}

/** The use of the machine since the last look. */
export class Gauge {
  #last: Ticks = ticks()

  read(): Usage {
    const now = ticks()
    const all = now.all - this.#last.all
    const cpuPercent = all <= 0 ? 0 : (100 * (now.busy - this.#last.busy)) / all
    this.#last = now
    return { cpuPercent: Math.round(cpuPercent * 10) / 10, ramGb: Math.round((totalmem() - freemem()) / 1e7) / 100 }
  }
}

function ticks(): Ticks {
  let busy = 0
  let all = 0
  for (const { times } of cpus()) {
    const sum = times.user + times.nice + times.sys + times.irq
    busy += sum
    all += sum + times.idle
  }
  return { busy, all }
}

interface TelemetryOptions {
  /** Percentage points of the processor, or of the memory, below which a change is not worth a word. */
  readonly deadband: number
  readonly forceMs: number
  readonly read: () => Usage
  readonly now: () => number
}

/** Decides when the use of the machine is told: when it has changed, and from time to time. */
export class Telemetry {
  readonly #options: TelemetryOptions
  readonly #told = new Map<object, { readonly usage: Usage; readonly at: number }>()

  constructor(options: TelemetryOptions) {
    this.#options = options
  }

  /** For the next heartbeat to this listener; nothing when there is nothing new. */
  next(listener: object): JsonObject | undefined {
    const { deadband, forceMs, read, now } = this.#options
    const usage = read()
    const last = this.#told.get(listener)
    if (last !== undefined && now() - last.at < forceMs && !differs(usage, last.usage, deadband)) return undefined
    this.#told.set(listener, { usage, at: now() })
    return { cpu_load_percent: usage.cpuPercent, ram_used_gb: usage.ramGb }
  }
}

function differs(a: Usage, b: Usage, percent: number): boolean {
  const ramPercent = (100 * Math.abs(a.ramGb - b.ramGb)) / (totalmem() / 1e9)
  return Math.abs(a.cpuPercent - b.cpuPercent) >= percent || ramPercent >= percent
}
