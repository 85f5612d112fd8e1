import { isImpresarioError, pause } from '@impresario/protocol'
import type { ChangesBody } from '@impresario/protocol'
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
/** More without the end of a message is no stream of ours. */
const MESSAGE_CHARS_MAX = 1_048_576
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
      const messages = new Messages()
      for await (const piece of watched(await transport.changes(last, stop.signal), end)) {
        failures = 0
        for (const change of messages.take(piece)) yield change
        last = messages.lastId ?? last
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

/** What `fetch` throws when a body ends in the middle, or when a silent stream was cut from here. */
function isCut(error: unknown): boolean {
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

/** Reads server-sent events out of pieces of text. */
class Messages {
  #text = ''
  /** Of the newest message, or comment with an id. */
  lastId: string | undefined

  take(piece: string): readonly Change[] {
    const blocks = (this.#text + piece).split('\n\n')
    this.#text = blocks.pop() ?? ''
    if (this.#text.length > MESSAGE_CHARS_MAX) throw new ConnectionError('A message of the stream has no end.')
    return blocks.flatMap((block) => this.#changeIn(block))
  }

  #changeIn(block: string): readonly Change[] {
    const fields = new Map<string, string>()
    for (const line of block.split('\n')) {
      const { name = '', value = '' } = /^(?<name>\w+): ?(?<value>.*)$/.exec(line)?.groups ?? {}
      fields.set(name, value)
    }
    this.lastId = fields.get('id') ?? this.lastId
    const [type, text] = [fields.get('event'), fields.get('data')]
    if (text === undefined || (type !== 'ready' && type !== 'change' && type !== 'reset')) return []
    return [believed({ type, id: this.lastId ?? '', ...said(JSON.parse(text)) })]
  }
}

function said(body: unknown): object {
  const { jobs, ...rest } = body as Partial<ChangesBody>
  return jobs === undefined ? rest : { ...rest, jobs: jobs.map((job) => fromWire(job)) }
}

/** Boundary: the stream is believed to be what its route describes. */
function believed(change: object): Change {
  return change as Change
}
