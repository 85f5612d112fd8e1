import { EventReader, isImpresarioError, pause } from '@impresario/protocol'
import type { ChangesBody, StreamMessage } from '@impresario/protocol'
import { ConnectionError } from './errors.ts'
import type { ClientTransport } from './transport.ts'
import { fromWire } from './wire-case.ts'
import type { CamelCased } from './wire-case.ts'

/**
 * What a stream of changes says. They are hints: read again what you show. `reset`: some changes were missed, so read
 * everything again.
 */
export type Change =
  | { readonly type: 'ready'; readonly id: string; readonly resumed: boolean }
  | {
      readonly type: 'change'
      readonly id: string
      readonly jobs: readonly CamelCased<ChangesBody['jobs'][number]>[]
      /** More jobs have changed than are named. */
      readonly more: boolean
      /** Workers came, went or changed. */
      readonly workers: boolean
    }
  | { readonly type: 'reset'; readonly id: string; readonly reason: string }

export interface ChangesOptions {
  /** Goes on after the change with this id, as far as the server still knows it. */
  readonly lastId?: string | undefined
  readonly signal?: AbortSignal | undefined
}

const AGAIN_MS = 500
const AGAIN_MS_MAX = 10_000
/** The server says something every ten seconds. A stream that is silent for longer is cut, and opened again. */
const SILENCE_MS = 35_000

/** One stream after the other, each from where the last one ended. Ends with the signal, or with a refusal. */
export async function* changesOf(
  transport: ClientTransport,
  { lastId, signal }: ChangesOptions,
): AsyncGenerator<Change, void, undefined> {
  let last = lastId
  let failures = 0
  for (; !isOver(signal);) {
    const stop = new AbortController()
    const end = (): void => stop.abort()
    signal?.addEventListener('abort', end, { once: true })
    try {
      const reader = new EventReader()
      for await (const piece of watched(await transport.changes(last, stop.signal), end)) {
        failures = 0
        for (const message of reader.take(piece)) yield* changeIn(message)
        last = reader.lastId ?? last
      }
    } catch (error) {
      if (isOver(signal)) return
      if (!mayComeBack(error)) throw error
      failures += 1
    } finally {
      signal?.removeEventListener('abort', end)
      stop.abort()
    }
    const waitMs = Math.min(AGAIN_MS_MAX, AGAIN_MS * 2 ** failures) * (0.5 + Math.random() / 2)
    await pause(waitMs, signal).catch(() => undefined)
  }
}

function isOver(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}

/** A server that starts again, a connection that was cut; not a token that is not valid. */
function mayComeBack(error: unknown): boolean {
  return isImpresarioError(error) ? error.retry !== 'never' : error instanceof ConnectionError || isCut(error)
}

/** What `fetch` throws when a body ends in the middle, or when a silent stream was cut from here; and a message without an end. */
function isCut(error: unknown): boolean {
  if (error instanceof RangeError) return true
  return error instanceof TypeError || (error instanceof Error && /^(?:AbortError|TimeoutError)$/.test(error.name))
}

async function* watched(pieces: AsyncIterable<string>, cut: () => void): AsyncGenerator<string, void, undefined> {
  let timer = setTimeout(cut, SILENCE_MS)
  try {
    for await (const piece of pieces) {
      clearTimeout(timer)
      timer = setTimeout(cut, SILENCE_MS)
      yield piece
    }
  } finally {
    clearTimeout(timer)
  }
}

/** What a message says, if it is one of ours. */
function changeIn({ event: type, data, id = '' }: StreamMessage): readonly Change[] {
  if (type !== 'ready' && type !== 'change' && type !== 'reset') return []
  return [believed({ type, id, ...said(JSON.parse(data)) })]
}

function said(body: unknown): object {
  const { jobs, ...rest } = body as Partial<ChangesBody>
  return jobs === undefined ? rest : { ...rest, jobs: jobs.map((job) => fromWire(job)) }
}

/** Boundary: the stream is believed to be what its route describes. */
function believed(change: object): Change {
  return change as Change
}
