/** What is known of a document once it is read. */
export interface Parsed {
  /** The format, such as `pdf` or `docx`. */
  readonly kind: string
  readonly title: string
  readonly text: string
  /** There was more text than the limit allows. The beginning is kept. */
  readonly isTruncated: boolean
}

const UNREADABLE = {
  UNSUPPORTED: 'This kind of file is not supported',
  BROKEN: 'The file is broken',
  ENCRYPTED: 'The file is protected by a password',
  TOO_LARGE: 'The file is too large',
} as const

export type UnreadableCode = keyof typeof UNREADABLE

/** The content of the file is the reason, so that another try would end the same way. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError'
  readonly code: UnreadableCode

  constructor(code: UnreadableCode, detail?: string) {
    super(detail === undefined ? `${UNREADABLE[code]}.` : `${UNREADABLE[code]}: ${detail}`)
    this.code = code
  }
}

export interface ParseLimits {
  /** Characters of text that are kept of one document. */
  readonly textCharsMax: number
  /** Bytes that packed files may unpack to, all parts of one document together. */
  readonly unpackedBytesMax: number
}
