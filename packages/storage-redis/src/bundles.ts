import { pack } from './codec.ts'
import type { FunctionName } from './library.ts'

/** One call, and who waits for it. */
interface Waiting {
  readonly name: FunctionName
  readonly args: readonly (string | Buffer)[]
  readonly resolve: (reply: unknown) => void
  readonly reject: (error: unknown) => void
}

type Send = (name: FunctionName, args: readonly (string | Buffer)[]) => Promise<unknown>

/** The server does nothing else while it works on a bundle: about two milliseconds for so many. */
const CALLS_MAX = 32
const BYTES_MAX = 262_144
/** Calls that come often and are short. Those that only read are bundled apart: they are answered also when memory is full. */
const BUNDLED: ReadonlyMap<FunctionName, 'many' | 'many_reads'> = new Map([
  ['commit', 'many'],
  ['claim', 'many'],
  ['renew', 'many'],
  ['survey', 'many'],
  ['read', 'many_reads'],
  ['peek', 'many_reads'],
])

/**
 * Sends the calls of one shard. Those that are made in the same round of the event loop go together as one call: an engine with
 * a hundred jobs at work makes most of its calls in answer to others that came at once, and each command of its own costs the
 * driver more than the call itself. Each of them succeeds or fails on its own.
 */
export class Bundles {
  readonly #send: Send
  #waiting: Waiting[] = []

  constructor(send: Send) {
    this.#send = send
  }

  call(name: FunctionName, args: readonly (string | Buffer)[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ name, args, resolve, reject })
      if (this.#waiting.length === 1) setImmediate(() => this.#flush())
    })
  }

  #flush(): void {
    const waiting = this.#waiting
    this.#waiting = []
    if (waiting.length === 1) {
      for (const one of waiting) this.#single(one)
      return
    }
    const open = new Map<'many' | 'many_reads', { calls: Waiting[]; bytes: number }>()
    for (const one of waiting) {
      const kind = BUNDLED.get(one.name)
      if (kind === undefined) {
        this.#single(one)
        continue
      }
      const bundle = open.get(kind) ?? { calls: [], bytes: 0 }
      bundle.calls.push(one)
      for (const arg of one.args) bundle.bytes += arg.length
      if (bundle.calls.length === CALLS_MAX || bundle.bytes > BYTES_MAX) {
        open.delete(kind)
        this.#together(kind, bundle.calls)
      } else open.set(kind, bundle)
    }
    for (const [kind, { calls }] of open) this.#together(kind, calls)
  }

  #single({ name, args, resolve, reject }: Waiting): void {
    this.#send(name, args).then(resolve, reject)
  }

  #together(kind: 'many' | 'many_reads', calls: readonly Waiting[]): void {
    const [only] = calls
    if (only !== undefined && calls.length === 1) {
      this.#single(only)
      return
    }
    const parts = calls.map(({ args }) => args.map((arg) => (typeof arg === 'string' ? Buffer.from(arg) : arg)))
    const lengths = calls.map(({ name }, index) => [name, ...(parts[index] ?? []).map(({ length }) => length)])
    // One long argument: each of its own would cost the driver as much as a small call.
    this.#send(kind, [pack(lengths), Buffer.concat(parts.flat())]).then(
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

/** The boundary where a reply gets its shape: `many` makes it. */
function repliesOf(replies: unknown): readonly (readonly [number, unknown])[] {
  return replies as readonly (readonly [number, unknown])[]
}
