import type { OcrStatus } from './ocr.ts'
import type { UnreadableCode } from './parsed.ts'

/** A document as it goes into the index. */
export interface ParsedDocument {
  readonly kind: string
  readonly title: string
  /** The text, packed: the index keeps it, and nothing else needs it on the way. */
  readonly packedText: Uint8Array
  readonly textChars: number
  readonly isTruncated: boolean
  readonly terms: {
    readonly name: string
    readonly title: string
    readonly body: string
    readonly parts: string
  }
}

/** What a file is, before anything is read from it. */
export interface Fingerprint {
  readonly size: number
  readonly mtimeMs: number
  /** SHA-256 of the content. */
  readonly hash: string
}

/** Reads documents. Replaceable: an option of `createDocuments`. */
export interface DocumentParser {
  fingerprint(path: string): Promise<Fingerprint>
  parseDocument(path: string): Promise<ParsedDocument>
  /** Whether it reads the text of pictures and scanned pages; without it, it does not. */
  readonly ocr?: OcrStatus
  /** Resolves when it can work. */
  check(): Promise<void>
  close(): Promise<void>
}

export type ParseFailureCode = UnreadableCode | 'TIMEOUT' | 'MEMORY' | 'CRASHED' | 'IO' | 'GONE' | 'CHANGED'

/** What keeps a file from being read. The first four are its content's fault: another try would end the same way. */
export class ParseFailure extends Error {
  override readonly name = 'ParseFailure'
  readonly code: ParseFailureCode

  constructor(code: ParseFailureCode, message: string) {
    super(message)
    this.code = code
  }

  get isPermanent(): boolean {
    return ['UNSUPPORTED', 'BROKEN', 'ENCRYPTED', 'TOO_LARGE'].includes(this.code)
  }
}
