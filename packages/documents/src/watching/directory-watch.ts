import { watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { nativePath, pathOf } from '../paths.ts'

interface Watched {
  readonly watcher: FSWatcher
  readonly identity: string
}

/**
 * Tells what happens directly in directories, one watch for each. Node's own recursive watch follows every single file on
 * Linux, and libraries keep every path in memory; here a folder of 100,000 files in 100 directories costs 100 watches.
 */
export class DirectoryWatch {
  readonly #watchers = new Map<string, Watched>()
  readonly #onEvent: (path: string) => void
  readonly #onProblem: (directory: string, code: string) => void

  constructor(onEvent: (path: string) => void, onProblem: (directory: string, code: string) => void) {
    this.#onEvent = onEvent
    this.#onProblem = onProblem
  }

  get size(): number {
    return this.#watchers.size
  }

  has(directory: string): boolean {
    return this.#watchers.has(directory)
  }

  /** Whether it is watched, and still the same directory: another one may stand in its place by now. */
  isOn(directory: string, identity: string): boolean {
    return this.#watchers.get(directory)?.identity === identity
  }

  /** `identity` tells a directory from another one that had or gets its name. */
  add(directory: string, identity: string): void {
    if (this.isOn(directory, identity)) return
    this.remove(directory)
    try {
      const watcher = watch(nativePath(directory), { encoding: 'buffer', persistent: false }, (_event, name) => {
        this.#onEvent(name === null ? directory : `${directory === '/' ? '' : directory}/${pathOf(name)}`)
      })
      watcher.on('error', (error) => {
        this.remove(directory)
        this.#onProblem(directory, codeOf(error))
      })
      this.#watchers.set(directory, { watcher, identity })
    } catch (error) {
      this.#onProblem(directory, codeOf(error))
    }
  }

  /** The directory and everything below it. */
  remove(directory: string): void {
    for (const [path, { watcher }] of this.#watchers) {
      if (path !== directory && !path.startsWith(`${directory}/`)) continue
      watcher.close()
      this.#watchers.delete(path)
    }
  }

  close(): void {
    for (const { watcher } of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
}
