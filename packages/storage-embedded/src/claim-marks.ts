import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'

/**
 * Says which turns this process has claimed, to the one that comes after it. A turn that ends the process takes its claim
 * with it, because a claim without a holder is not written to the journal; its mark shows that it was claimed.
 *
 * Nothing waits for the disk: what a process has written is kept by the operating system, however the process ends. After a
 * power cut a mark may be missing, and its turn is then taken for one that was never claimed.
 *
 * A turn is named by its `seq`, which no other has.
 */
export interface ClaimMarks {
  /** What earlier processes had claimed when they ended, and some that had come to their end. */
  readonly left: ReadonlySet<number>
  claimed(turns: readonly number[]): void
  /** Its claim was handed back, as if it had not been. */
  handedBack(turn: number): void
  /** It was settled, or is not there any more. */
  gone(turn: number): void
  /** Nothing is left to tell. */
  close(): void
}

/** From here on the file is written anew, with what is still claimed. */
const BYTES_MAX = 65_536

/** Marks in a file of their own, one in each line; a minus before it takes it back. */
export class FileClaimMarks implements ClaimMarks {
  readonly left: ReadonlySet<number>
  /** Claimed by this process, or left by an earlier one, and not gone. */
  readonly #open: Set<number>
  #file: number | undefined
  #bytes: number

  constructor(path: string) {
    this.#file = openSync(path, 'a', 0o600)
    const text = readFileSync(path, 'utf8')
    this.left = marksIn(text)
    this.#open = new Set(this.left)
    this.#bytes = text.length
  }

  claimed(turns: readonly number[]): void {
    for (const turn of turns) this.#open.add(turn)
    this.#attempt((file) => {
      if (this.#bytes < BYTES_MAX) this.#append(file, turns)
      else this.#replace(file)
    })
  }

  handedBack(turn: number): void {
    if (!this.#open.delete(turn)) return
    this.#attempt((file) => this.#append(file, [-turn]))
  }

  gone(turn: number): void {
    this.#open.delete(turn)
  }

  close(): void {
    this.#attempt((file) => ftruncateSync(file))
    this.#attempt((file) => closeSync(file))
    this.#file = undefined
  }

  #append(file: number, turns: Iterable<number>): void {
    let text = ''
    for (const turn of turns) text += `${turn}\n`
    this.#bytes += writeSync(file, text)
  }

  #replace(file: number): void {
    ftruncateSync(file)
    this.#bytes = 0
    this.#append(file, this.#open)
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

/** The last line may be torn. */
function marksIn(text: string): ReadonlySet<number> {
  const marks = new Set<number>()
  for (const line of text.split('\n').slice(0, -1)) {
    const turn = Number(line)
    if (turn < 0) marks.delete(-turn)
    else marks.add(turn)
  }
  return marks
}
