import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'

/**
 * Tells the next process which turns this process has claimed. When a turn crashes the process, its claim is lost,
 * because a claim without a holder is not written to the journal. Its mark shows that it was claimed.
 *
 * Marks do not wait for the disk: the operating system keeps what a process has written, however the process ends.
 * After a power failure a mark may be missing, and its turn then counts as never claimed.
 *
 * A settled turn gets a mark of its own. The commit that settles it reaches the disk later, and a process that ends in
 * between did not end in the handler of that turn.
 *
 * A turn is identified by its `seq`, which is unique.
 */
export interface ClaimMarks {
  /** Turns that earlier processes had claimed when they ended. Some of them may have been settled. */
  readonly left: ReadonlySet<number>
  /**
   * Turns that earlier processes had settled, and the token of the claim. If such a turn still exists, its commit was
   * lost.
   */
  readonly settledBefore: ReadonlyMap<number, number>
  claimed(turns: readonly number[]): void
  /** The claim was handed back, as if it had not happened. */
  handedBack(turn: number): void
  /** The turn is settled, and its commit is on its way to the disk. */
  settled(turn: number, token: number): void
  /** The turn no longer exists. */
  gone(turn: number): void
  /** No marks are needed any more. */
  close(): void
}

/** Beyond this size the file is rewritten with the turns that are still claimed. */
const BYTES_MAX = 65_536

/** The number of settled turns that are kept when the file is rewritten. Their commits are on disk long before. */
const SETTLED_MAX = 1_000

/**
 * Marks in a separate file, one per line. A leading minus removes a mark. An equals sign marks a turn as settled, with
 * the token of that claim. Settled turns are written together, once per tick of the event loop.
 */
export class FileClaimMarks implements ClaimMarks {
  readonly left: ReadonlySet<number>
  readonly settledBefore: ReadonlyMap<number, number>
  /** Claimed by this process or left by an earlier one, and not gone. */
  readonly #open: Set<number>
  /** The most recently settled turns, as lines. */
  readonly #settled = new Set<string>()
  /** Lines that are not written yet. */
  #unwritten = ''
  #file: number | undefined
  #bytes: number

  constructor(path: string) {
    this.#file = openSync(path, 'a', 0o600)
    const text = readFileSync(path, 'utf8')
    const { left, settled } = marksIn(text)
    this.left = left
    this.settledBefore = settled
    this.#open = new Set(this.left)
    this.#bytes = text.length
  }

  claimed(turns: readonly number[]): void {
    for (const turn of turns) this.#open.add(turn)
    this.#attempt((file) => {
      if (this.#bytes < BYTES_MAX) this.#append(file, linesOf(turns))
      else this.#replace(file)
    })
  }

  settled(turn: number, token: number): void {
    this.#open.delete(turn)
    const line = `=${turn}:${token}\n`
    this.#settled.add(line)
    const [oldest] = this.#settled
    if (oldest !== undefined && this.#settled.size > SETTLED_MAX) this.#settled.delete(oldest)
    if (this.#unwritten === '') setImmediate(() => this.#attempt((file) => this.#append(file, '')))
    this.#unwritten += line
  }

  handedBack(turn: number): void {
    if (!this.#open.delete(turn)) return
    this.#attempt((file) => this.#append(file, `-${turn}\n`))
  }

  gone(turn: number): void {
    this.#open.delete(turn)
  }

  close(): void {
    this.#attempt((file) => ftruncateSync(file))
    this.#attempt((file) => closeSync(file))
    this.#file = undefined
  }

  #append(file: number, lines: string): void {
    const text = this.#unwritten + lines
    this.#unwritten = ''
    if (text !== '') this.#bytes += writeSync(file, text)
  }

  #replace(file: number): void {
    ftruncateSync(file)
    this.#bytes = 0
    this.#unwritten = ''
    this.#append(file, linesOf(this.#open) + [...this.#settled].join(''))
  }

  /** A disk that refuses a mark also refuses the journal, which reports the error. */
  #attempt(write: (file: number) => void): void {
    if (this.#file === undefined) return
    try {
      write(this.#file)
    } catch {
      this.#file = undefined
    }
  }
}

function linesOf(turns: Iterable<number>): string {
  let text = ''
  for (const turn of turns) text += `${turn}\n`
  return text
}

/** The last line may be incomplete. The newest line about a turn is valid. */
function marksIn(text: string): Pick<FileClaimMarks, 'left'> & { readonly settled: ReadonlyMap<number, number> } {
  const left = new Set<number>()
  const settled = new Map<number, number>()
  for (const line of text.split('\n').slice(0, -1)) {
    const [, sign, name, token] = /^([-=]?)(\d+)(?::(\d+))?$/.exec(line) ?? []
    const turn = Number(name)
    left.delete(turn)
    settled.delete(turn)
    if (sign === '=') settled.set(turn, Number(token))
    else if (sign === '') left.add(turn)
  }
  return { left, settled }
}
