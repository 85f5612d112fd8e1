import { pack } from './codec.ts'
import type { Arguments } from './codec.ts'
import type { FunctionName } from '../functions/library.ts'
import { MessageWriter } from './message-writer.ts'

/** One call and its pending promise. */
interface Waiting {
  readonly name: FunctionName
  readonly args: Arguments
  readonly resolve: (reply: unknown) => void
  readonly reject: (error: unknown) => void
}

type Send = (name: FunctionName, args: readonly (string | Buffer)[]) => Promise<unknown>
type Bundle = 'many' | 'many_reads'

/** The server does nothing else while it runs a bundle: about two milliseconds for this many calls. */
const CALLS_MAX = 32
const BYTES_MAX = 262_144
/**
 * Calls that are frequent and short. Read-only calls are bundled separately: they succeed even when the server's memory
 * is full.
 */
const BUNDLED: ReadonlyMap<FunctionName, Bundle> = new Map([
  ['commit', 'many'],
  ['claim', 'many'],
  ['renew', 'many'],
  ['survey', 'many'],
  ['read', 'many_reads'],
  ['peek', 'many_reads'],
])

/**
 * Sends the calls of one shard. Calls made in the same tick of the event loop are sent as one call: an engine with a
 * hundred active jobs makes most of its calls in response to replies that arrived together, and a separate command
 * costs the driver more than the call itself. Each call succeeds or fails on its own.
 *
 * The arguments are encoded when they are sent, one after the other: encoding them in between other work takes three
 * times as long.
 */
export class Bundles {
  readonly #send: Send
  readonly #writer = new MessageWriter()
  #waiting: Waiting[] = []

  constructor(send: Send) {
    this.#send = send
  }

  call(name: FunctionName, args: Arguments): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ name, args, resolve, reject })
      if (this.#waiting.length === 1) setImmediate(() => this.#flush())
    })
  }

  #flush(): void {
    const waiting = this.#waiting
    this.#waiting = []
    const bundles = new Map<Bundle, Waiting[]>()
    for (const one of waiting) {
      const kind = BUNDLED.get(one.name)
      if (kind === undefined) {
        this.#single(one)
        continue
      }
      const calls = bundles.get(kind) ?? []
      bundles.set(kind, calls)
      calls.push(one)
    }
    for (const [kind, calls] of bundles) {
      if (calls.length > 1) this.#together(kind, calls)
      else for (const one of calls) this.#single(one)
    }
  }

  #single({ name, args: [now, ...values], resolve, reject }: Waiting): void {
    let written: readonly Buffer[]
    try {
      written = values.map((value) => (Buffer.isBuffer(value) ? value : pack(value)))
    } catch (error) {
      reject(error)
      return
    }
    this.#send(name, [now, ...written]).then(resolve, reject)
  }

  /** Uses as many bundles as needed. */
  #together(kind: Bundle, calls: readonly Waiting[]): void {
    let written: Waiting[] = []
    let lengths: (readonly (string | number)[])[] = []
    const flush = (): void => {
      if (written.length > 0) this.#sendTogether(kind, written, lengths)
      written = []
      lengths = []
    }
    for (const one of calls) {
      const before = this.#writer.length
      try {
        lengths.push([one.name, ...this.#write(one.args)])
      } catch (error) {
        this.#writer.rewind(before)
        one.reject(error)
        continue
      }
      written.push(one)
      if (written.length === CALLS_MAX || this.#writer.length > BYTES_MAX) flush()
    }
    flush()
  }

  /** Returns the length of each argument. */
  #write([now, ...values]: Arguments): readonly number[] {
    const writer = this.#writer
    let from = writer.length
    const lengths: number[] = []
    const end = (): void => {
      lengths.push(writer.length - from)
      from = writer.length
    }
    writer.raw(Buffer.from(now))
    end()
    for (const value of values) {
      if (Buffer.isBuffer(value)) writer.raw(value)
      else writer.value(value)
      end()
    }
    return lengths
  }

  #sendTogether(kind: Bundle, calls: readonly Waiting[], lengths: readonly (readonly (string | number)[])[]): void {
    // One long argument: separate ones would each cost the driver as much as a small call.
    this.#send(kind, [pack(lengths), this.#writer.take()]).then(
      (replies) => {
        for (const [index, [isFailed, reply]] of repliesOf(replies).entries()) {
          const one = calls[index]
          if (isFailed === 1) one?.reject(new Error(String(reply)))
          else one?.resolve(reply)
        }
      },
      (error: unknown) => {
        for (const { reject } of calls) reject(error)
      },
    )
  }
}

/** Type boundary where a reply gets its type: `many` creates it. */
function repliesOf(replies: unknown): readonly (readonly [number, unknown])[] {
  return replies as readonly (readonly [number, unknown])[]
}
