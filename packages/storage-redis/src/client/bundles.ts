import { BatchMessage, pack } from './codec.ts'
import type { Arguments } from './codec.ts'
import { functionName } from '../functions/library.ts'
import type { CallName, FunctionName, RegisteredName } from '../functions/library.ts'
import { MessageWriter } from './message-writer.ts'

/** One call and its pending promise. */
interface Waiting {
  readonly name: FunctionName
  readonly args: Arguments
  readonly resolve: (reply: unknown) => void
  readonly reject: (error: unknown) => void
}

type Bundle = 'many' | 'many_reads'

/** The server does nothing else while it runs a bundle: about two milliseconds for this many calls. */
const CALLS_MAX = 32
const BYTES_MAX = 262_144
/**
 * Calls that are frequent and short. Read-only calls are bundled separately: they succeed even when the server's memory
 * is full.
 */
const BUNDLED: Readonly<Record<CallName, Bundle>> = {
  commit: 'many',
  claim: 'many',
  renew: 'many',
  survey: 'many',
  read: 'many_reads',
  peek: 'many_reads',
}

function isBundled(name: FunctionName): name is CallName {
  return Object.hasOwn(BUNDLED, name)
}

/** What sends a call alone, and what sends a bundle as it is written here. */
export interface Sender {
  send(name: RegisteredName, args: readonly (string | Buffer)[]): Promise<unknown>
  sendWritten(name: RegisteredName, command: Buffer): Promise<unknown>
  /** What the caller is told of an error. */
  translated(error: unknown): Error
}

/**
 * Sends the calls of one shard. Calls made in the same tick of the event loop are sent as one call: an engine with a
 * hundred active jobs makes most of its calls in response to replies that arrived together, and a separate command
 * costs the driver more than the call itself. Each call succeeds or fails on its own.
 *
 * The arguments are encoded when they are sent, one after the other: encoding them in between other work takes three
 * times as long.
 */
export class Bundles {
  readonly #sender: Sender
  /** What precedes the arguments of a command, except for the number of them. */
  readonly #heads: Readonly<Record<Bundle, string>>
  readonly #headArguments: number
  readonly #text = new MessageWriter()
  readonly #bodies = new MessageWriter()
  #waiting: Waiting[] = []

  /** The keys that a call names, after the number of them. */
  constructor(keys: readonly (string | number)[], sender: Sender) {
    const headOf = (name: Bundle): string => ['fcall', functionName(name), ...keys].map(argumentOf).join('')
    this.#sender = sender
    this.#heads = { many: headOf('many'), many_reads: headOf('many_reads') }
    this.#headArguments = 2 + keys.length
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
    const bundles: Record<Bundle, Waiting[]> = { many: [], many_reads: [] }
    for (const one of waiting) {
      const { name } = one
      if (isBundled(name)) bundles[BUNDLED[name]].push(one)
      else this.#single(name, one)
    }
    this.#together('many', bundles.many)
    this.#together('many_reads', bundles.many_reads)
  }

  #single(name: RegisteredName, { args: [now, ...values], resolve, reject }: Waiting): void {
    let written: readonly Buffer[]
    try {
      written = values.map((value) => (Buffer.isBuffer(value) ? value : pack(value)))
    } catch (error) {
      reject(this.#sender.translated(error))
      return
    }
    this.#sender.send(name, [now, ...written]).then(resolve, (error: unknown) => reject(this.#sender.translated(error)))
  }

  /** Uses as many bundles as needed. */
  #together(kind: Bundle, calls: readonly Waiting[]): void {
    let written: Waiting[] = []
    let bodies = 0
    for (const one of calls) {
      if (written.length === 0) this.#begin(calls)
      const before = [this.#text.length, this.#bodies.length] as const
      try {
        bodies += this.#write(one)
      } catch (error) {
        this.#text.rewind(before[0])
        this.#bodies.rewind(before[1])
        one.reject(this.#sender.translated(error))
        continue
      }
      written.push(one)
      if (written.length === CALLS_MAX || this.#bodies.length > BYTES_MAX) {
        this.#sendTogether(kind, written, bodies)
        written = []
        bodies = 0
      }
    }
    if (written.length > 0) this.#sendTogether(kind, written, bodies)
    else this.#text.rewind(0)
  }

  /** Whose batches they are. */
  #begin(calls: readonly Waiting[]): void {
    const writer = calls.map(({ args }) => args[1]).find((value) => value instanceof BatchMessage)?.writer
    this.#text.rewind(0)
    this.#text.value(writer?.origin ?? false)
    this.#text.value(writer?.hands ?? false)
  }

  /** Returns the number of its bodies. */
  #write({ name, args: [now, question] }: Waiting): number {
    const text = this.#text
    text.value(name)
    text.value(now)
    if (question instanceof BatchMessage) {
      question.write(text, this.#bodies)
      return question.bodies
    }
    text.value(question)
    return 0
  }

  #sendTogether(kind: Bundle, calls: readonly Waiting[], bodies: number): void {
    this.#sender.sendWritten(kind, this.#command(kind, bodies)).then(
      (replies) => {
        const [failed, ...each] = repliesOf(replies)
        for (const [index, { resolve, reject }] of calls.entries()) {
          if (failed.includes(index + 1)) reject(this.#sender.translated(new Error(String(each[index]))))
          else resolve(each[index])
        }
      },
      (error: unknown) => {
        for (const { reject } of calls) reject(this.#sender.translated(error))
      },
    )
  }

  #command(kind: Bundle, bodies: number): Buffer {
    const size = this.#text.length
    const head = `*${this.#headArguments + 1 + bodies}\r\n${this.#heads[kind]}$${size}\r\n`
    const command = Buffer.allocUnsafe(Buffer.byteLength(head) + size + 2 + this.#bodies.length)
    let at = command.write(head)
    at += this.#text.moveTo(command, at)
    at += command.write('\r\n', at)
    this.#bodies.moveTo(command, at)
    return command
  }
}

/** Type boundary where a reply gets its type: `many` creates it. */
function repliesOf(replies: unknown): readonly [failed: readonly number[], ...replies: readonly unknown[]] {
  return replies as readonly [readonly number[], ...(readonly unknown[])]
}

/** An argument of a command, as the server's protocol writes it. */
function argumentOf(value: string | number): string {
  const text = String(value)
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`
}
