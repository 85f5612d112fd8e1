import { EventReader } from '@impresario/protocol'
import type { ChangesBody } from '@impresario/protocol'
import { useSyncExternalStore } from 'react'
import { ApiError, request } from './api.ts'
import { BASE, apiUrl } from './places.ts'

/** While the server tells of changes, what it tells of is read again this often all the same: a hint may be lost. */
const CALM_MS = 30_000
/** What it does not tell of is found by asking, and so is everything without a stream. */
const SLOW_MS = 5_000
const POLL_MS = 2_000
/** Between two tries to connect: the first, and the longest. */
const RETRY_MS = 1_000
const RETRY_MS_MAX = 30_000
/** The server shows a sign of life every ten seconds. */
const SILENCE_MS = 25_000

/** What has changed; `everything` when it is not known what; `told`: any of what the stream tells of. */
export type Hint = ChangesBody | 'everything' | 'told'

type Listener = () => void

/** Between the tabs of one browser. The id is where another tab can go on. */
type Told =
  | { readonly type: 'state'; readonly isLive: boolean; readonly lastId: string | undefined }
  | { readonly type: 'hint'; readonly hint: Hint; readonly lastId: string | undefined }
  | { readonly type: 'ask' }

/**
 * Hears of changes from the server, over one stream for all tabs of this browser.
 *
 * Each tab asks for a lock. The one that has it *leads*: it reads the stream and tells the other tabs. When it is closed, the
 * lock goes to the next, which goes on where the first one ended. Where there are no locks (no HTTPS) every tab leads. A
 * stream that breaks is opened again, after longer and longer pauses; until then it is *not live*, and pages ask every two
 * seconds.
 */
class Live {
  #isLive = false
  #lastId: string | undefined
  #leads = false
  #hadStream = false
  #stopping = new AbortController()
  #channel: BroadcastChannel | undefined
  readonly #listeners = new Set<Listener>()
  readonly #hears = new Set<(hint: Hint) => void>()

  get isLive(): boolean {
    return this.#isLive
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  onHint(hear: (hint: Hint) => void): () => void {
    this.#hears.add(hear)
    return () => this.#hears.delete(hear)
  }

  /** Connects, until the function that it gives is called. */
  start(): () => void {
    const stopping = new AbortController()
    this.#stopping = stopping
    const channel = new BroadcastChannel(`impresario ${BASE.pathname}`)
    this.#channel = channel
    channel.addEventListener('message', ({ data }: MessageEvent<Told>) => this.#hear(data))
    channel.postMessage({ type: 'ask' } satisfies Told)
    void this.#lead(stopping.signal)
    return () => {
      stopping.abort()
      channel.close()
      this.#leads = false
      this.#set(false)
    }
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const run = (): Promise<void> => {
      this.#leads = true
      return this.#connectAgain(signal)
    }
    // The type says that it is always there; without HTTPS it is not.
    const locks = navigator.locks as LockManager | undefined
    try {
      if (locks === undefined) await run()
      else await locks.request(`impresario ${BASE.pathname}`, { signal }, run)
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  async #connectAgain(signal: AbortSignal): Promise<void> {
    let pauseMs = RETRY_MS
    while (!signal.aborted) {
      const begunAt = Date.now()
      try {
        await this.#read(signal)
      } catch (error) {
        // Who is not signed in any more gets no stream, however often it is asked for.
        if (error instanceof ApiError && error.status === 401) return
      }
      this.#set(false)
      if (Date.now() - begunAt > RETRY_MS_MAX) pauseMs = RETRY_MS
      await pause(pauseMs * (0.75 + Math.random() / 2), signal)
      pauseMs = Math.min(pauseMs * 2, RETRY_MS_MAX)
    }
  }

  /** Reads one stream to its end. */
  async #read(signal: AbortSignal): Promise<void> {
    const cut = new AbortController()
    const stop = (): void => cut.abort()
    signal.addEventListener('abort', stop, { once: true })
    let watchdog = setTimeout(stop, SILENCE_MS)
    try {
      const headers = this.#lastId === undefined ? {} : { 'last-event-id': this.#lastId }
      const { body } = await request(apiUrl('changes'), { signal: cut.signal, headers, isStream: true })
      const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
      // `EventSource` could not do it: it sends no headers of its own, and a session needs one.
      const events = new EventReader()
      for (;;) {
        const piece = await reader?.read()
        if (piece?.value === undefined) return
        clearTimeout(watchdog)
        watchdog = setTimeout(stop, SILENCE_MS)
        for (const { event, data } of events.take(piece.value)) {
          this.#lastId = events.lastId
          this.#message(event, data)
        }
        this.#lastId = events.lastId
      }
    } finally {
      clearTimeout(watchdog)
      cut.abort()
      signal.removeEventListener('abort', stop)
    }
  }

  #message(event: string, data: string): void {
    if (event === 'ready') {
      this.#set(true)
      // What changed before the first stream began was not told. After a pause the server may be another one.
      const { resumed } = JSON.parse(data) as { readonly resumed: boolean }
      if (!resumed) this.#tell(this.#hadStream ? 'everything' : 'told')
      this.#hadStream = true
    } else if (event === 'reset') this.#tell('everything')
    else if (event === 'change') this.#tell(JSON.parse(data) as ChangesBody)
  }

  #tell(hint: Hint): void {
    for (const hear of this.#hears) hear(hint)
    if (this.#leads) this.#post({ type: 'hint', hint, lastId: this.#lastId })
  }

  #hear(told: Told): void {
    if (this.#leads) {
      if (told.type === 'ask') this.#post({ type: 'state', isLive: this.#isLive, lastId: this.#lastId })
      return
    }
    if (told.type === 'ask') return
    this.#lastId = told.lastId
    if (told.type === 'state') this.#set(told.isLive)
    else this.#tell(told.hint)
  }

  #set(isLive: boolean): void {
    if (isLive === this.#isLive) return
    this.#isLive = isLive
    for (const listener of this.#listeners) listener()
    if (this.#leads) this.#post({ type: 'state', isLive, lastId: this.#lastId })
  }

  #post(told: Told): void {
    if (!this.#stopping.signal.aborted) this.#channel?.postMessage(told)
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        resolve()
      },
      { once: true },
    )
  })
}

export const live = new Live()

export function useIsLive(): boolean {
  return useSyncExternalStore(
    (listener) => live.subscribe(listener),
    () => live.isLive,
  )
}

/** What the stream tells of, by the first part of the key under which it is kept. */
const TOLD = new Set(['job', 'jobs', 'counts', 'quarantine', 'queues', 'run', 'runs', 'events', 'event-counts'])
const TOLD_OF_WORKERS = new Set(['worker', 'workers', 'counts', 'queues'])

/** How often to ask again for what is kept under this key. */
export function useRefreshMs(key: unknown): number {
  const isTold = typeof key === 'string' && (TOLD.has(key) || TOLD_OF_WORKERS.has(key))
  return useIsLive() ? (isTold ? CALM_MS : SLOW_MS) : POLL_MS
}

/** Whether what is kept under this key may have changed. */
export function concerns(hint: Hint, key: readonly unknown[]): boolean {
  if (hint === 'everything') return true
  const [kind, id] = key
  if (typeof kind !== 'string') return false
  if (hint === 'told') return TOLD.has(kind) || TOLD_OF_WORKERS.has(kind)
  if (hint.workers && TOLD_OF_WORKERS.has(kind)) return true
  const hasJobs = hint.more || hint.jobs.length > 0
  if (kind === 'job') return hint.more || hint.jobs.some((job) => job.job_id === id)
  // What workers hold changes with the jobs.
  return hasJobs && (TOLD.has(kind) || TOLD_OF_WORKERS.has(kind))
}
