import { Readable } from 'node:stream'
import type { Engine } from '@impresario/engine'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import { ChangeLog } from './change-log.ts'

export interface StreamBounds {
  readonly streamsMax: number
  readonly perClientMax: number
  /** A line without meaning so often, so that a proxy does not take the connection for a dead one. */
  readonly beatMs: number
  /** So often it is looked at whether the caller may still listen. */
  readonly recheckMs: number
  /** Two messages of one stream are at least so far apart; further where many are open. */
  readonly windowMs: number
  /** What changes after the last stream has closed is kept so long, for those that come back. */
  readonly keepMs: number
}

const BOUNDS: StreamBounds = {
  streamsMax: LIMITS.changeStreamsMax,
  perClientMax: LIMITS.changeStreamsPerClientMax,
  // Below the time after which a reader counts as gone, and below that of every common proxy.
  beatMs: 10_000,
  recheckMs: 5_000,
  windowMs: 200,
  keepMs: 60_000,
}

/** A caller that listens. */
export interface Listener {
  readonly clientId: string
  /** Whose jobs it may see; everybody's without it. */
  readonly owner: string | undefined
  /** The id of the last message that it has got. */
  readonly lastId: string | undefined
  /** Whether it may still listen. */
  readonly isAdmitted: () => Promise<boolean>
}

/**
 * Streams of changes to those who listen. All of them read one log; a stream only knows how far it has come. While its reader
 * takes nothing, nothing is written to it: when it goes on, it gets all that happened in one message, or is told to read
 * everything again.
 */
export class ChangeStreams {
  readonly #engine: Pick<Engine, 'onChanges'>
  readonly #bounds: StreamBounds
  readonly #log: ChangeLog
  readonly #open = new Set<ChangeStream>()
  /** Streams at the same place with the same rights get the same text. */
  readonly #texts = new Map<string, Message>()
  #textsBytes = 0
  #unsubscribe: (() => void) | undefined
  #timers: readonly NodeJS.Timeout[] = []
  #flushing: NodeJS.Timeout | undefined
  #leaving: NodeJS.Timeout | undefined
  #told: (count: number) => void = () => undefined
  #flushedAt = Number.NEGATIVE_INFINITY

  constructor(engine: Pick<Engine, 'onChanges'>, bounds: Partial<StreamBounds> = {}, log = new ChangeLog()) {
    this.#engine = engine
    this.#bounds = { ...BOUNDS, ...bounds }
    this.#log = log
  }

  /** Tells how many are open, now and whenever that changes. */
  onCount(tell: (count: number) => void): void {
    this.#told = tell
    tell(this.#open.size)
  }

  get size(): number {
    return this.#open.size
  }

  /** What the texts take that several streams may get. */
  get textsBytes(): number {
    return this.#textsBytes
  }

  /** A stream for this listener; refuses one too many. It ends when it is destroyed. */
  open(listener: Listener): ChangeStream {
    const { streamsMax, perClientMax } = this.#bounds
    if (this.#open.size >= streamsMax) {
      throw new ImpresarioError('OVERLOADED', 'Too many streams of changes are open. Ask again later, or poll.')
    }
    const own = [...this.#open].filter(({ listener: { clientId } }) => clientId === listener.clientId)
    if (own.length >= perClientMax) {
      const message = `This client has ${perClientMax} streams of changes open, which is all that it may have. Close one, or poll.`
      throw new ImpresarioError('TOO_MANY_REQUESTS', message)
    }
    this.#listen()
    const known = listener.lastId === undefined ? undefined : this.#log.numberOf(listener.lastId)
    const stream = new ChangeStream(listener, known ?? this.#log.newest, (from) => this.#messageFor(from, listener))
    this.#open.add(stream)
    this.#told(this.#open.size)
    stream.body.once('close', () => this.#closed(stream))
    const isLost = listener.lastId !== undefined && known === undefined
    const ready = this.#message('ready', known ?? this.#log.newest, { resumed: known !== undefined })
    stream.say(`retry: 2000\n${ready}`)
    if (isLost) stream.say(this.#message('reset', this.#log.newest, { reason: 'unknown_id' }))
    stream.flush()
    return stream
  }

  /** Ends all streams, for good. */
  close(): void {
    for (const stream of this.#open) stream.finish()
    this.#unlisten()
  }

  #listen(): void {
    clearTimeout(this.#leaving)
    this.#leaving = undefined
    this.#unsubscribe ??= this.#engine.onChanges((changes) => {
      this.#log.add(changes)
      this.#forgetTexts()
      this.#schedule()
    })
    if (this.#timers.length > 0) return
    const { beatMs, recheckMs } = this.#bounds
    this.#timers = [setInterval(() => this.#beat(), beatMs), setInterval(() => this.#recheck(), recheckMs)]
    for (const timer of this.#timers) timer.unref()
  }

  #closed(stream: ChangeStream): void {
    this.#open.delete(stream)
    this.#told(this.#open.size)
    if (this.#open.size > 0) return
    for (const timer of this.#timers) clearInterval(timer)
    this.#timers = []
    clearTimeout(this.#leaving)
    this.#leaving = setTimeout(() => this.#unlisten(), this.#bounds.keepMs)
    this.#leaving.unref()
  }

  #unlisten(): void {
    clearTimeout(this.#flushing)
    this.#flushing = undefined
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#forgetTexts()
    this.#log.clear()
  }

  /** The first change after a pause goes out at once, the next ones together. */
  #schedule(): void {
    if (this.#flushing !== undefined) return
    const windowMs = windowOf(this.#open.size, this.#bounds.windowMs)
    const waitMs = Math.max(0, this.#flushedAt + windowMs - performance.now())
    this.#flushing = setTimeout(() => this.#flush(), waitMs)
    this.#flushing.unref()
  }

  #flush(): void {
    this.#flushing = undefined
    this.#flushedAt = performance.now()
    for (const stream of this.#open) stream.flush()
  }

  #beat(): void {
    for (const stream of this.#open) stream.say(`: beat\nid: ${this.#log.idOf(stream.at)}\n\n`)
  }

  #recheck(): void {
    for (const stream of this.#open) {
      stream.listener.isAdmitted().then(
        (isAdmitted) => (isAdmitted ? undefined : stream.finish()),
        () => stream.finish(),
      )
    }
  }

  /** What a stream that has come so far gets next. */
  #messageFor(from: number, { owner }: Listener): Message {
    const key = `${from} ${owner === undefined ? '' : `of ${owner}`}`
    const known = this.#texts.get(key)
    if (known !== undefined) return known
    // Encoded once for all of them.
    const message = { bytes: Buffer.from(this.#textSince(from, owner)), at: this.#log.newest }
    // Who comes back again and again with other ids gets a text for each of them, while nothing changes.
    if (this.#textsBytes + message.bytes.length > LIMITS.changesBytesMax) this.#forgetTexts()
    this.#texts.set(key, message)
    this.#textsBytes += message.bytes.length
    return message
  }

  #forgetTexts(): void {
    this.#texts.clear()
    this.#textsBytes = 0
  }

  #textSince(from: number, owner: string | undefined): string {
    const { newest } = this.#log
    const changes = this.#log.since(from, owner)
    if (changes === 'gone') return this.#message('reset', newest, { reason: 'behind' })
    const isEmpty = changes.jobs.length === 0 && !changes.more && !changes.workers
    return isEmpty ? '' : this.#message('change', newest, changes)
  }

  #message(event: string, number: number, data: object): string {
    return `id: ${this.#log.idOf(number)}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`
  }
}

interface Message {
  /** Empty where nothing of it concerns the listener. */
  readonly bytes: Buffer
  /** The newest change that it covers. */
  readonly at: number
}

/** Up to so many streams get their messages as often as they may; more of them share what those would get. */
const STREAMS_AT_FULL_PACE = 100

/** How far two messages of one stream are apart: however many streams are open, the server writes a bounded number a second. */
export function windowOf(streams: number, windowMs: number): number {
  return windowMs * Math.max(1, streams / STREAMS_AT_FULL_PACE)
}

/** What waits for the connection of one stream; one message may go beyond it. */
const STREAM_BYTES = 16_384

/** One connection, and how far it has come. */
export class ChangeStream {
  readonly listener: Listener
  /** Where the messages can be read. */
  readonly body: Readable
  readonly #messageFor: (from: number) => Message
  #at: number
  #hasRoom = true
  #isOver = false

  constructor(listener: Listener, at: number, messageFor: (from: number) => Message) {
    this.listener = listener
    this.#at = at
    this.#messageFor = messageFor
    const read = (): void => {
      this.#hasRoom = true
      this.flush()
    }
    this.body = new Readable({ highWaterMark: STREAM_BYTES, read })
  }

  /** The number of the last change that was written. */
  get at(): number {
    return this.#at
  }

  /** Writes what has changed, as soon as there is room for it. */
  flush(): void {
    if (!this.#hasRoom || this.#isOver) return
    const { bytes, at } = this.#messageFor(this.#at)
    this.#at = at
    if (bytes.length > 0) this.#hasRoom = this.body.push(bytes)
  }

  /** Something beside the changes; left out where there is no room. */
  say(text: string): void {
    if (this.#hasRoom && !this.#isOver) this.#hasRoom = this.body.push(text)
  }

  /** Ends it after what was written. */
  finish(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.body.push(null)
  }
}
