import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { ImpresarioError } from '@impresario/protocol'
import type { ErrorCode } from '@impresario/protocol'
import { tooLong } from './search.ts'
import type { Hit, PackedRow, SearchBounds, SearchOptions, SearchResult } from './search.ts'

interface SearchWish {
  readonly what: 'search'
  readonly directory: string
  readonly query: string
  readonly options: SearchOptions
  readonly bounds: Partial<SearchBounds>
}

interface TextWish {
  readonly what: 'text'
  readonly directory: string
  readonly id: number
}

/** For documents that were found elsewhere: no index is opened. */
interface HitsWish {
  readonly what: 'hits'
  readonly directory: ''
  readonly query: string
  readonly rows: readonly PackedRow[]
  readonly bounds: Pick<Partial<SearchBounds>, 'searchMs'>
}

interface UnpackWish {
  readonly what: 'unpack'
  readonly directory: ''
  readonly packed: Uint8Array
}

/** What a thread is asked for. */
export type SearchOrder =
  | SearchWish
  | TextWish
  | HitsWish
  | UnpackWish
  | { readonly what: 'close'; readonly directory: string }
  | { readonly what: 'end'; readonly directory: '' }

export interface SearchAnswer {
  readonly value?: unknown
  readonly error?: string
  readonly code?: ErrorCode
}

export interface SearchThreadsOptions {
  readonly threadsMax: number
  /** Searches that wait for a thread. */
  readonly waitingMax: number
  /** Threads that were given up and have not ended. With more of them nothing is searched. */
  readonly stuckMax: number
  /** Longest time until a thread is ready. */
  readonly startMs: number
  /** Longest time of a search, without its wait for a thread. */
  readonly searchMs: number
  /** What a thread that does not keep its own limit gets on top, before it is given up. */
  readonly graceMs: number
  /** An idle thread gives its memory back after this. */
  readonly idleMs: number
}

const DEFAULTS: SearchThreadsOptions = {
  threadsMax: 2,
  waitingMax: 200,
  stuckMax: 4,
  startMs: 30_000,
  searchMs: 5_000,
  graceMs: 1_000,
  idleMs: 60_000,
}

interface Waiting {
  readonly order: SearchOrder
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/**
 * Searches on threads of their own, so that none holds up what else the process does, however long it takes. All indexes of
 * the process share the threads: one is started with the first search, a second when the first is busy. Of an index in a
 * database, which searches itself, they only make the snippets.
 *
 * A search stops by itself at its time limit. A thread that does not answer shortly after that, because a disk hangs perhaps,
 * is given up, and the next search gets a new one. It is not killed: code of SQLite that is cut ends the whole process. So
 * their number is bounded, and it ends when it can.
 */
export class SearchThreads {
  readonly #options: SearchThreadsOptions
  readonly #threads = new Set<SearchThread>()
  /** Given up, and not at their end yet. */
  readonly #stuck = new Set<SearchThread>()
  readonly #waiting: Waiting[] = []

  constructor(options: Partial<SearchThreadsOptions> = {}) {
    this.#options = { ...DEFAULTS, ...options }
  }

  async search(directory: string, query: string, options: SearchOptions): Promise<SearchResult> {
    const bounds = { searchMs: this.#options.searchMs }
    return believed<SearchResult>(await this.#ask({ what: 'search', directory, query, options, bounds }))
  }

  async text(directory: string, id: number): Promise<{ readonly path: string; readonly text: string } | undefined> {
    return believed(await this.#ask({ what: 'text', directory, id }))
  }

  async hits(rows: readonly PackedRow[], query: string): Promise<readonly Hit[]> {
    const bounds = { searchMs: this.#options.searchMs }
    return believed(await this.#ask({ what: 'hits', directory: '', query, rows, bounds }))
  }

  async unpacked(packed: Uint8Array): Promise<string> {
    return believed(await this.#ask({ what: 'unpack', directory: '', packed }))
  }

  /** Lets go of an index that is closed. */
  async release(directory: string): Promise<void> {
    await Promise.all([...this.#threads].map((thread) => thread.release(directory)))
  }

  /** How many threads there are: busy and idle ones, and those that were given up and have not ended yet. */
  get size(): { readonly usable: number; readonly stuck: number } {
    return { usable: this.#threads.size, stuck: this.#stuck.size }
  }

  #ask(order: SearchOrder): Promise<unknown> {
    const { waitingMax, stuckMax } = this.#options
    if (this.#waiting.length >= waitingMax || this.#stuck.size >= stuckMax) {
      return Promise.reject(new ImpresarioError('OVERLOADED', 'Too many searches wait. Try again in a moment.'))
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ order, resolve, reject })
      this.#next()
    })
  }

  #next(): void {
    const { threadsMax } = this.#options
    while (this.#waiting.length > 0) {
      const idle = [...this.#threads].find(({ isIdle }) => isIdle)
      if (idle === undefined && this.#threads.size >= threadsMax) return
      const next = this.#waiting.shift()
      if (next === undefined) return
      void this.#perform(idle ?? this.#start(), next)
    }
  }

  #start(): SearchThread {
    const thread = new SearchThread(this.#options, {
      givenUp: () => {
        this.#threads.delete(thread)
        this.#stuck.add(thread)
      },
      ended: () => {
        this.#threads.delete(thread)
        this.#stuck.delete(thread)
      },
    })
    this.#threads.add(thread)
    return thread
  }

  async #perform(thread: SearchThread, { order, resolve, reject }: Waiting): Promise<void> {
    try {
      resolve(await thread.ask(order))
    } catch (error) {
      reject(error instanceof Error ? error : new Error(String(error)))
    }
    this.#next()
  }
}

interface ThreadEvents {
  givenUp(): void
  ended(): void
}

/**
 * Starting → busy ⇄ idle → given up → ended. It is given up after a while without work and when it does not answer in time,
 * and ends after the call that it is in. An error of its own ends it too.
 */
class SearchThread {
  readonly #options: SearchThreadsOptions
  readonly #events: ThreadEvents
  readonly #thread = startThread()
  #pending: { readonly resolve: (answer: SearchAnswer) => void; readonly reject: (error: Error) => void } | undefined
  /** To be closed when the search at hand is over, and who waits for that. */
  readonly #released = new Map<string, () => void>()
  #isBusy = true
  #timer: NodeJS.Timeout | undefined
  #ready: Promise<SearchAnswer> | undefined
  #isGivenUp = false

  constructor(options: SearchThreadsOptions, events: ThreadEvents) {
    this.#options = options
    this.#events = events
    this.#thread.on('message', (answer: SearchAnswer) => {
      const pending = this.#pending
      this.#pending = undefined
      pending?.resolve(answer)
    })
    this.#thread.on('error', (error) => this.#giveUp(new Error(`A search failed: ${String(error)}`)))
    this.#thread.on('exit', () => {
      this.#giveUp(new Error('A search failed: its thread ended.'))
      this.#events.ended()
    })
    this.#thread.unref()
  }

  get isIdle(): boolean {
    return !this.#isBusy && !this.#isGivenUp
  }

  async ask(order: SearchOrder): Promise<unknown> {
    this.#isBusy = true
    const answer = await this.#answerTo(order, this.#options.searchMs + this.#options.graceMs)
    for (const directory of this.#released.keys()) await this.#close(directory)
    this.#isBusy = false
    if (answer.error === undefined) return answer.value
    throw answer.code === undefined ? new Error(answer.error) : new ImpresarioError(answer.code, answer.error)
  }

  /** At once, or when the search at hand is over. Whoever waits for it may end the process: no search is cut then. */
  async release(directory: string): Promise<void> {
    if (this.#isGivenUp) return
    if (this.#isBusy) {
      await new Promise<void>((resolve) => {
        const before = this.#released.get(directory)
        this.#released.set(directory, () => {
          before?.()
          resolve()
        })
      })
      return
    }
    this.#isBusy = true
    await this.#close(directory)
    this.#isBusy = false
  }

  async #close(directory: string): Promise<void> {
    await this.#answerTo({ what: 'close', directory }, this.#options.graceMs).catch(() => undefined)
    this.#released.get(directory)?.()
    this.#released.delete(directory)
  }

  /** Holds the process only as long as somebody waits. */
  async #answerTo(order: SearchOrder, ms: number): Promise<SearchAnswer> {
    clearTimeout(this.#timer)
    this.#thread.ref()
    try {
      this.#ready ??= this.#within(this.#options.startMs)
      await this.#ready
      const answer = this.#within(ms)
      this.#thread.postMessage(order)
      return await answer
    } finally {
      this.#thread.unref()
      if (!this.#isGivenUp) this.#timer = setTimeout(() => this.#giveUp(), this.#options.idleMs).unref()
    }
  }

  /** Its next message. */
  async #within(ms: number): Promise<SearchAnswer> {
    const message = new Promise<SearchAnswer>((resolve, reject) => {
      this.#pending = { resolve, reject }
    })
    const late = setTimeout(() => this.#giveUp(tooLong(this.#options.searchMs)), ms)
    try {
      return await message
    } finally {
      clearTimeout(late)
    }
  }

  #giveUp(reason: Error = new Error('The thread ended.')): void {
    if (this.#isGivenUp) return
    this.#isGivenUp = true
    clearTimeout(this.#timer)
    this.#events.givenUp()
    this.#pending?.reject(reason)
    this.#pending = undefined
    for (const resolve of this.#released.values()) resolve()
    this.#released.clear()
    this.#thread.postMessage({ what: 'end', directory: '' } satisfies SearchOrder)
  }
}

/** Registers a loader first: from sources, as tests run, the program is TypeScript, which Node 20 does not read. */
const FROM_SOURCE = `
const { workerData } = require('node:worker_threads')
import(workerData.loader).then(({ register }) => register()).then(() => import(workerData.program))
`

function startThread(): Worker {
  const built = new URL('search-main.js', import.meta.url)
  const limits = { resourceLimits: { maxYoungGenerationSizeMb: 8 }, env: {} }
  if (!import.meta.url.endsWith('.ts')) return new Worker(built, limits)
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx/package.json'))
  const loader = new URL('dist/esm/api/index.mjs', tsx).href
  const workerData = { loader, program: built.href.replace(/js$/, 'ts') }
  return new Worker(FROM_SOURCE, { ...limits, workerData, eval: true, execArgv: ['--conditions=source'] })
}

/** Boundary: the program of the thread is ours. */
function believed<T>(value: unknown): T {
  return value as T
}

/** Of all indexes of this process. */
export const searchThreads = new SearchThreads()
