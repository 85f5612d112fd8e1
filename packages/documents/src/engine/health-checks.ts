import type { Log } from '@impresario/core'
import type { Indexer } from '../index/indexer.ts'
import type { DocumentParser } from '../parsing/parser.ts'
import type { FileMonitor } from '../watching/monitor.ts'
import type { ComponentHealth } from './state.ts'

interface HealthOptions {
  readonly monitor: FileMonitor
  readonly parser: DocumentParser
  readonly indexer: Indexer
  readonly settings: { readonly interval: number; readonly timeout: number }
  readonly log: Log
}

/** Looks at the parts from time to time, and tells when one stops to work or works again. */
export class HealthChecks {
  readonly #options: HealthOptions
  #components: readonly ComponentHealth[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(options: HealthOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer = setInterval(() => {
      void this.check()
    }, this.#options.settings.interval).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  components(): readonly ComponentHealth[] {
    return this.#components
  }

  async check(): Promise<readonly ComponentHealth[]> {
    const { parser, indexer, monitor, log } = this.#options
    const { isHealthy, problems } = monitor.health()
    const before = new Map(this.#components.map((one) => [one.name, one.isHealthy]))
    const watched = isHealthy
      ? { name: 'monitor', isHealthy }
      : { name: 'monitor', isHealthy, problem: problems.join('; ') }
    const others = await Promise.all([this.#within('parser', parser.check()), this.#within('indexer', indexer.check())])
    this.#components = [watched, ...others]
    for (const one of this.#components) {
      if (!one.isHealthy && before.get(one.name) !== false) log.error('a component is not healthy', { ...one })
      if (one.isHealthy && before.get(one.name) === false) log.info('a component is healthy again', { name: one.name })
    }
    return this.#components
  }

  async #within(name: string, checked: Promise<void>): Promise<ComponentHealth> {
    const { timeout } = this.#options.settings
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${timeout / 1_000} s`)), timeout)
    })
    try {
      await Promise.race([checked, late])
      return { name, isHealthy: true }
    } catch (error) {
      return { name, isHealthy: false, problem: error instanceof Error ? error.message : String(error) }
    } finally {
      clearTimeout(timer)
    }
  }
}
