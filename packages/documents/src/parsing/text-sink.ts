import { UnreadableError } from './parsed.ts'
import type { ParseLimits } from './parsed.ts'

/** Collects the text of one document, and counts what was unpacked for it. Parts inside of a document share it. */
export class TextSink {
  readonly #limits: ParseLimits
  readonly #pieces: string[] = []
  #chars = 0
  #unpackedBytes = 0
  #endsWithBreak = true
  #isTruncated = false
  title = ''

  constructor(limits: ParseLimits) {
    this.#limits = limits
  }

  /** From here on nothing is kept: readers stop. */
  get isFull(): boolean {
    return this.#chars >= this.#limits.textCharsMax
  }

  /** Readers stop when it is full, so that a text which fills it exactly counts as cut. */
  get isTruncated(): boolean {
    return this.#isTruncated || this.isFull
  }

  get room(): number {
    return this.#limits.textCharsMax - this.#chars
  }

  add(text: string): void {
    if (text === '') return
    const kept = text.length > this.room ? text.slice(0, this.room) : text
    if (kept.length < text.length) this.#isTruncated = true
    if (kept === '') return
    this.#pieces.push(kept)
    this.#chars += kept.length
    this.#endsWithBreak = kept.endsWith('\n')
    // Readers of marked-up formats add a word at a time.
    if (this.#pieces.length > 4_096) this.#pieces.splice(0, this.#pieces.length, this.#pieces.join(''))
  }

  /** Ends the line, unless it has ended already. */
  break(): void {
    if (!this.#endsWithBreak) this.add('\n')
  }

  line(text: string): void {
    this.break()
    this.add(text)
    this.break()
  }

  suggestTitle(title: string | undefined): void {
    if (this.title === '' && title !== undefined) this.title = title.replaceAll(/\s+/g, ' ').trim().slice(0, 500)
  }

  truncate(): void {
    this.#isTruncated = true
  }

  countUnpacked(bytes: number): void {
    this.#unpackedBytes += bytes
    if (this.#unpackedBytes <= this.#limits.unpackedBytesMax) return
    const megabytes = Math.round(this.#limits.unpackedBytesMax / 1_000_000)
    throw new UnreadableError('TOO_LARGE', `it unpacks to more than ${megabytes} MB.`)
  }

  text(): string {
    return this.#pieces.join('').replaceAll('\0', ' ')
  }
}
