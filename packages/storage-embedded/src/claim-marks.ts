import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'

/**
 * Says which turns this process has claimed, to the one that comes after it. A turn that ends the process takes its claim
 * with it, because a claim without a holder is not written to the journal; its mark shows that it was claimed.
 *
 * Nothing waits for the disk: what a process has written is kept by the operating system, however the process ends. After a
 * power cut a mark may be missing, and its turn is then taken for one that was never claimed.
 *
 * A turn that was settled has a mark of its own. The commit that settles it reaches the disk later, and a process that ends in
 * between did not end in that turn's handler.
 *
 * A turn is named by its `seq`, which no other has.
 */
export interface ClaimMarks {
  /** What earlier processes had claimed when they ended, and some that had come to their end. */
  readonly left: ReadonlySet<number>
  /** What earlier processes had settled, and by which token. Where such a turn is still there, its commit was lost with them. */
  readonly settledBefore: ReadonlyMap<number, number>
  claimed(turns: readonly number[]): void
  /** Its claim was handed back, as if it had not been. */
  handedBack(turn: number): void
  /** What it was claimed for is done, and on its way to the disk. */
  settled(turn: number, token: number): void
  /** It is not there any more. */
  gone(turn: number): void
  /** Nothing is left to tell. */
  close(): void
}

/** From here on the file is written anew, with what is still claimed. */
const BYTES_MAX = 65_536

/** So many settled turns are kept when the file is written anew. Their commits are on disk long before. */
const SETTLED_MAX = 1_000

/**
 * Marks in a file of their own, one in each line. A minus before it takes it back; an equals sign says that it was settled,
 * with the token of that claim. Settled turns are written together, once in a turn of the event loop.
 */
export class FileClaimMarks implements ClaimMarks {
  readonly left: ReadonlySet<number>
  readonly settledBefore: ReadonlyMap<number, number>
  /** Claimed by this process, or left by an earlier one, and not gone. */
  readonly #open: Set<number>
  /** The newest that were settled, as lines. */
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

  /** A disk that refuses a mark refuses the journal too, which says so. */
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

/** The last line may be torn. The newest line about a turn holds. */
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
