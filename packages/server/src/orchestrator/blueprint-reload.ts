import type { Log } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import type { ReloadableRegistry } from './reloadable-registry.ts'
import { loadBlueprints } from './blueprint-loader.ts'
import { SourceWatch } from './source-watch.ts'
import { tellStranded } from './stranded-jobs.ts'
import { checkTypes } from './type-check.ts'

export interface BlueprintReloadOptions {
  readonly directory: string
  readonly blueprints: ReloadableRegistry
  readonly engine: Pick<Engine, 'listJobs'>
  readonly log: Log
  /** Let the compiler look at the files after each load. */
  readonly checksTypes: boolean
}

/** Errors of the compiler that are shown; the first ones are those that matter. */
const ERRORS_SHOWN_MAX = 20

/**
 * Loads the blueprints of a directory, and loads them again when one of their files, or a file that they import, changes.
 * For development.
 *
 * `new` → `load` → watching → `close`. Loads run one after the other: an older one must not come in after a newer one. The
 * compiler looks at the newest files only, beside everything else.
 */
export class BlueprintReload {
  readonly #options: BlueprintReloadOptions
  readonly #sources: SourceWatch
  readonly #closing = new AbortController()
  #loading = Promise.resolve()
  #files: readonly string[] = []
  #isChecking = false
  #isCheckDue = false
  #hadErrors = false

  constructor(options: BlueprintReloadOptions) {
    this.#options = options
    this.#sources = new SourceWatch(options.directory, () => {
      this.#loading = this.#loading.then(() => this.#reload())
    })
  }

  /** The first load. Refuses what cannot be loaded. */
  async load(): Promise<void> {
    const { directory, blueprints, log } = this.#options
    const files = new Set<string>()
    const onImport = (file: string): void => {
      this.#sources.follow(file)
      if (!file.includes('node_modules')) files.add(file)
    }
    const found = await loadBlueprints(directory, { isFresh: true, onImport })
    for (const warning of blueprints.replace(found).warnings) log.warn(warning)
    this.#files = [...files]
    this.#checkTypes()
  }

  close(): void {
    this.#closing.abort()
    this.#sources.close()
  }

  async #reload(): Promise<void> {
    const { directory, log } = this.#options
    try {
      await this.load()
      log.info('blueprints reloaded', { directory })
    } catch (error) {
      // For the person who has just saved a file: the place and the problem, without our own stack.
      const reason = error instanceof Error ? error.message : String(error)
      log.error('blueprints could not be reloaded; the old ones stay', { error: reason })
      return
    }
    await tellStranded(this.#options, this.#closing.signal)
  }

  /** One run at a time. What changes meanwhile is looked at once, by the next. */
  #checkTypes(): void {
    if (!this.#options.checksTypes || this.#closing.signal.aborted) return
    this.#isCheckDue = true
    if (!this.#isChecking) void this.#runChecks()
  }

  /** Never rejects. */
  async #runChecks(): Promise<void> {
    const { directory, log } = this.#options
    this.#isChecking = true
    while (this.#isCheckDue && !this.#closing.signal.aborted) {
      this.#isCheckDue = false
      try {
        const report = await checkTypes(directory, this.#files, this.#closing.signal)
        if (!this.#closing.signal.aborted && !this.#isCheckDue && report !== undefined) this.#tellTypes(report.errors)
      } catch (error) {
        log.debug('types could not be checked', { error: String(error) })
      }
    }
    this.#isChecking = false
  }

  #tellTypes(errors: readonly string[]): void {
    const { log } = this.#options
    for (const error of errors.slice(0, ERRORS_SHOWN_MAX)) log.warn(`type error: ${error}`)
    const more = errors.length - ERRORS_SHOWN_MAX
    if (more > 0) log.warn(`${more} more type errors; npx tsc --noEmit shows all of them`)
    if (errors.length === 0 && this.#hadErrors) log.info('no more type errors')
    this.#hadErrors = errors.length > 0
  }
}
