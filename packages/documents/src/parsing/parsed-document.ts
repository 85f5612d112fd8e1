import { deflateRawSync } from 'node:zlib'
import { nameTerms, termsOf } from '../text/tokens.ts'
import type { Parsed } from './parsed.ts'
import type { ParsedDocument } from './parser.ts'

/** What the index needs of a document: for parsers of your own. */
export function parsedDocument(name: string, { kind, title, text, isTruncated }: Parsed): ParsedDocument {
  const { body, parts } = termsOf(text)
  return {
    kind,
    title,
    packedText: deflateRawSync(Buffer.from(text), { level: 1 }),
    textChars: text.length,
    isTruncated,
    terms: { name: nameTerms(name), title: termsOf(title).body, body, parts },
  }
}
