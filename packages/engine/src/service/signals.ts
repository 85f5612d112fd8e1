import type { Clock, Item, Log, Random, Service, Storage } from '@impresario/core'
import { Pump } from './pump.ts'

/** What one instance tells the others: what it is about, and its words. */
export type Signal = readonly [topic: Topic, ...words: string[]]

/**
 * `hello`, `bye`: who is there. `turn`: a worker got its turn for a type of task. `took`: a worker has a task now. `ended`: its
 * result is here. `drop`: a task was taken back. `recall`: a worker shall stop a task. `worker`: one is new, or accepts tasks
 * again or no longer. `anew`: a worker has restarted and holds nothing. `wait`: a caller waits for a job. `news`: a job has
 * changed that is waited for. `watch`: an instance wants to hear of all changes. `change`: a job has changed. `changes`: more
 * jobs of these clients have, or of any. `flow`: how many tasks of a type an instance has queued and handed out.
 */
export type Topic =
  | 'hello'
  | 'bye'
  | 'turn'
  | 'took'
  | 'ended'
  | 'drop'
  | 'recall'
  | 'worker'
  | 'anew'
  | 'wait'
  | 'news'
  | 'watch'
  | 'change'
  | 'changes'
  | 'flow'

/** What an instance says of itself with each `hello`. */
export interface Introduction {
  readonly name: string
  readonly version: string
  /** When its process started, Unix seconds. */
  readonly startedAt: number
  /** The processes that it leads for all instances. */
  readonly leads: readonly string[]
}

/** Another instance, as it was heard last. */
export interface Peer extends Introduction {
  /** `silent`: it has said nothing for fifteen seconds, and is probably gone. `stopped`: it said goodbye. */
  readonly status: 'running' | 'silent' | 'stopped'
  /** How long ago it was heard. */
  readonly silentMs: number
}

export interface SignalsOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** What the others learn of this instance; without it, only that there is one. */
  readonly introduce?: (() => Introduction) | undefined
  /** Other instances may share the storage. Without them nothing is ever sent. */
  readonly isShared: boolean
}

/** How often an instance says that it is there. */
const HELLO_MS = 5_000
/**
 * Who has just started may not hear yet although it is heard: the storage's line to it is only being laid. So it asks again
 * after this, and twice that, and so on.
 */
const FIRST_HELLO_MS = 50
/** Sent with a hello by an instance that knows no other: it is answered. */
const ALONE = 'alone'
/** An instance that has been silent for this long is gone. */
const PEER_MS = 3 * HELLO_MS
/**
 * A lane is a key of an index in every storage, so it is kept short: these are at most 1,800 bytes. About 14 signals about
 * jobs fit into one.
 */
const LANE_CHARS_MAX = 600
/** So many at once; with the waiting for each commit that is more than 10,000 signals in a second. */
const LANES_MAX = 8
/** All instances write to these items in turn, so that there are never more of them. One stem: one shard. */
const PLACES = 64
/** Signals are hints. When the storage takes none for long, the oldest are worth the least. */
const PENDING_MAX = 10_000
const SENDERS_MAX = 256
/** Some storages tell again of what lies there: so many of a sender's newest numbers are known. */
const NUMBERS_MAX = 256
/** A name or a version that is longer is cut, so that a hello always fits. */
const WORD_CHARS_MAX = 120
const LEADS_MAX = 8
/** The id of the sender and the number come before it. */
const HELLO_CHARS_MAX = 500
/** Who is gone is remembered for so long. */
const GONE_MS = 600_000

interface Sender {
  introduction: Introduction | undefined
  heardAt: number
  isGone: boolean
  readonly numbers: Set<number>
}

/**
 * What instances on one storage tell each other at once: hints, of which any may come late, twice or not at all. Whoever
 * listens has another way to find out, only slower.
 *
 * The storage tells every instance which lane of a queue has got an item; here the lane itself is the message. Each commit
 * replaces older items, so that all of it stays a handful of rows, and nothing is ever claimed.
 *
 * An instance is *alone* until it hears another one, *in company* until it has heard none for fifteen seconds, and
 * then alone again. Alone it says nothing but `hello`, every five seconds: a single instance on a shared storage pays for
 * one small commit in that time. What is sent while a commit is on its way goes with the next one, so that the load on the
 * storage has a bound whatever happens.
 */
export class Signals implements Service {
  readonly name = 'signals'
  readonly #options: SignalsOptions
  /** Names this instance and this life of it. */
  #own = ''
  readonly #pump: Pump
  readonly #listeners = new Map<Topic, Set<(...words: string[]) => void>>()
  readonly #senders = new Map<string, Sender>()
  readonly #pending: Signal[] = []
  #sending: Promise<void> | undefined
  #number = 0
  #helloMs = FIRST_HELLO_MS / 2
  /** The last peer is gone then, unless it says something before. */
  #companyUntil = Number.NEGATIVE_INFINITY
  #unwatch: (() => void) | undefined

  constructor(options: SignalsOptions) {
    this.#options = options
    const { clock, log } = options
    this.#pump = new Pump({ name: this.name, clock, log, idleMs: HELLO_MS, round: () => this.#greet() })
  }

  /** Whether there are other instances. */
  get hasPeers(): boolean {
    return this.#options.clock.now() < this.#companyUntil
  }

  /** The other instances that have said who they are, those that are gone for some minutes too. */
  get peers(): readonly Peer[] {
    const now = this.#options.clock.now()
    return [...this.#senders.values()].flatMap(({ introduction, heardAt, isGone }) => {
      const silentMs = Math.max(0, now - heardAt)
      if (introduction === undefined || silentMs > GONE_MS) return []
      const status = isGone ? 'stopped' : silentMs > PEER_MS ? 'silent' : 'running'
      return [{ ...introduction, status, silentMs }]
    })
  }

  async start(): Promise<void> {
    if (!this.#options.isShared || this.#unwatch !== undefined) return
    this.#own = this.#options.random.id()
    this.#unwatch = this.#options.storage.watch('signals', (lane) => this.#hear(lane))
    await this.#pump.start()
  }

  async stop(): Promise<void> {
    if (this.#unwatch === undefined) return
    this.#unwatch()
    this.#unwatch = undefined
    await this.#pump.stop()
    this.#add(['bye'])
    await this.#sending
  }

  async tick(): Promise<{ readonly worked: number }> {
    if (!this.#options.isShared) return { worked: 0 }
    return this.#pump.tick()
  }

  /** Tells the other instances, if there are any. Never fails and never blocks its caller. */
  send(signal: Signal): void {
    if (this.#unwatch !== undefined && this.hasPeers) this.#add(signal)
  }

  on(topic: Topic, listener: (...words: string[]) => void): void {
    const listeners = this.#listeners.get(topic) ?? new Set()
    this.#listeners.set(topic, listeners)
    listeners.add(listener)
  }

  async #greet(): Promise<{ worked: number; nextInMs: number | undefined }> {
    const isAlone = !this.hasPeers
    this.#helloMs = isAlone ? Math.min(this.#helloMs * 2, HELLO_MS) : HELLO_MS
    this.#add(this.#hello(isAlone ? ALONE : ''))
    await this.#sending
    return { worked: 0, nextInMs: this.#helloMs }
  }

  #hello(word: string): Signal {
    const own = this.#options.introduce?.()
    if (own === undefined) return ['hello', word]
    const [name, version] = [own.name, own.version].map((text) => text.slice(0, WORD_CHARS_MAX))
    const leads = own.leads.slice(0, LEADS_MAX)
    const said: Signal = ['hello', word, name ?? '', version ?? '', String(own.startedAt), ...leads]
    // Rather without a name than not at all.
    return JSON.stringify(said).length < HELLO_CHARS_MAX ? said : ['hello', word]
  }

  #add(signal: Signal): void {
    this.#pending.push(signal)
    if (this.#pending.length > PENDING_MAX) this.#pending.shift()
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
    })
  }

  async #sendAll(): Promise<void> {
    const { storage, log } = this.#options
    // Signals of the same tick go into the same commit.
    await Promise.resolve()
    while (this.#pending.length > 0) {
      const enqueue = this.#takeLanes().map((lane, index): Item => {
        const id = `signal.${(this.#number - index) % PLACES}`
        return { queue: 'signals', id, lane, priority: 0, delayMs: 0, payload: null }
      })
      try {
        await storage.commit({ enqueue })
      } catch (error) {
        log.debug('other instances could not be told', { error: String(error) })
      }
    }
  }

  /** As much of what is pending as one commit takes. */
  #takeLanes(): readonly string[] {
    const lanes: string[] = []
    let taken = 0
    while (lanes.length < LANES_MAX && taken < this.#pending.length) {
      this.#number += 1
      let text = JSON.stringify([this.#own, this.#number]).slice(0, -1)
      const start = taken
      while (taken < this.#pending.length) {
        const next = `,${JSON.stringify(this.#pending[taken])}`
        if (taken > start && text.length + next.length >= LANE_CHARS_MAX) break
        // One that is too long for any lane is left out.
        if (text.length + next.length < LANE_CHARS_MAX) text += next
        taken += 1
      }
      lanes.push(`${text}]`)
    }
    this.#pending.splice(0, taken)
    return lanes
  }

  #hear(lane: string): void {
    const message = messageIn(lane)
    if (message === undefined || message.from === this.#own) return
    const sender = this.#senderOf(message.from)
    if (sender.numbers.has(message.number)) return
    sender.numbers.add(message.number)
    if (sender.numbers.size > NUMBERS_MAX) for (const oldest of sender.numbers) if (sender.numbers.delete(oldest)) break
    sender.heardAt = this.#options.clock.now()
    sender.isGone = message.signals.some(([topic]) => topic === 'bye')
    this.#companyUntil = Math.max(...[...this.#senders.values()].map((one) => (one.isGone ? -Infinity : one.heardAt)))
    this.#companyUntil += PEER_MS
    // Who believes to be alone learns at once that it is not.
    if (message.signals.some(([topic, word]) => topic === 'hello' && word === ALONE)) this.#add(this.#hello(''))
    sender.introduction = message.signals.map(introductionIn).find((one) => one !== undefined) ?? sender.introduction
    for (const [topic, ...words] of message.signals) this.#tell(topic, words)
  }

  #senderOf(from: string): Sender {
    const known = this.#senders.get(from)
    if (known !== undefined) return known
    const sender: Sender = {
      introduction: undefined,
      heardAt: Number.NEGATIVE_INFINITY,
      isGone: false,
      numbers: new Set(),
    }
    this.#senders.set(from, sender)
    if (this.#senders.size > SENDERS_MAX) for (const [oldest] of this.#senders) if (this.#senders.delete(oldest)) break
    return sender
  }

  #tell(topic: Topic, words: readonly string[]): void {
    for (const listener of this.#listeners.get(topic) ?? []) {
      try {
        listener(...words)
      } catch (error) {
        this.#options.log.error('a signal of another instance was not understood', { topic, error: String(error) })
      }
    }
  }
}

interface Message {
  readonly from: string
  readonly number: number
  readonly signals: readonly Signal[]
}

/** The boundary of what other instances wrote: other versions of this program among them. What is not understood is left out. */
function messageIn(lane: string): Message | undefined {
  let value: unknown
  try {
    value = JSON.parse(lane)
  } catch {
    return undefined
  }
  if (!Array.isArray(value)) return undefined
  const [from, number, ...rest] = value as readonly unknown[]
  if (typeof from !== 'string' || typeof number !== 'number') return undefined
  return { from, number, signals: rest.filter(isSignal) }
}

/** Instances of older versions say no more than hello. */
function introductionIn([topic, _word, name, version, started, ...leads]: Signal): Introduction | undefined {
  const startedAt = Number(started)
  if (topic !== 'hello' || name === undefined || version === undefined || !Number.isFinite(startedAt)) return undefined
  return { name, version, startedAt, leads }
}

function isSignal(value: unknown): value is Signal {
  return Array.isArray(value) && value.every((word) => typeof word === 'string')
}
