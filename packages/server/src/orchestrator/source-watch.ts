import { readdirSync, statSync, watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'

/** Editors write a file in several steps; this much quiet means that it is done. */
const QUIET_MS = 100
/** A directory with more below it is no directory of blueprints. */
const DIRECTORIES_MAX = 2_000
const SOURCE = /\.(?:[cm]?[jt]sx?|json)$/

interface Watched {
  readonly watcher: FSWatcher
  /** Tells a directory from another one that has taken its place since. */
  readonly inode: number
}

/**
 * Says when the files of a directory, or files that these import from elsewhere, have changed.
 *
 * What is watched are directories, never files: an editor that writes beside and renames leaves another file under the old
 * name, and a watch on the old one reports nothing any more. After every change directories that are new, or were
 * replaced, are watched too.
 */
export class SourceWatch {
  readonly #root: string
  readonly #changed: () => void
  readonly #watched = new Map<string, Watched>()
  /** Files outside of the directory that count as well. */
  readonly #outside = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(root: string, changed: () => void) {
    this.#root = resolve(root)
    this.#changed = changed
    // Noticed from above when the whole directory is replaced.
    this.#watch(dirname(this.#root))
    this.#scan()
  }

  /** A file that something in the directory imports. Packages of others do not change. */
  follow(file: string): void {
    if (this.#isClosed || this.#isInside(file) || this.#outside.has(file)) return
    if (file.split(sep).includes('node_modules')) return
    this.#outside.add(file)
    this.#watch(dirname(file))
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    for (const { watcher } of this.#watched.values()) watcher.close()
    this.#watched.clear()
  }

  #isInside(path: string): boolean {
    return path === this.#root || path.startsWith(`${this.#root}${sep}`)
  }

  /** Watches every directory below the root. Gives how many of them are new. */
  #scan(): number {
    let added = 0
    const open = [this.#root]
    for (let looked = 0; looked < DIRECTORIES_MAX; looked += 1) {
      const directory = open.pop()
      if (directory === undefined) return added
      if (this.#watch(directory)) added += 1
      open.push(...directoriesIn(directory))
    }
    return added
  }

  /** Whether the directory was not watched until now. */
  #watch(directory: string): boolean {
    const inode = statSync(directory, { throwIfNoEntry: false })?.ino
    const known = this.#watched.get(directory)
    if (inode === undefined || known?.inode === inode) return false
    known?.watcher.close()
    this.#watched.delete(directory)
    try {
      const watcher = watch(directory, (_event, name) => this.#notice(directory, name))
      watcher.on('error', () => {
        watcher.close()
        this.#watched.delete(directory)
      })
      this.#watched.set(directory, { watcher, inode })
      return true
    } catch {
      // It is gone again, or the system has no more to give: what is above it is watched.
      return false
    }
  }

  #notice(directory: string, name: string | null): void {
    if (this.#isClosed) return
    const path = name === null ? directory : join(directory, name)
    const isInside = this.#isInside(path)
    if (!isInside && !this.#outside.has(path)) return
    const hasNewDirectory = isInside && this.#scan() > 0
    const isSource = name === null || SOURCE.test(basename(path))
    if (!hasNewDirectory && !isSource) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#changed, QUIET_MS)
  }
}

function directoriesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.'))
      .map(({ name }) => join(directory, name))
  } catch {
    return []
  }
}
