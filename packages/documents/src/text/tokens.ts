import { foldedForm, termOf } from './stemming.ts'

/** Changes whenever a text would give other terms than before. An index made by another version is made again. */
export const TOKENIZER_VERSION = 1

/** Characters that hold a code together: `AB-123/4`, `1.2.3`, `user_7@example.org`. The index keeps them in terms. */
export const CONNECTORS = '-./_:@#+,'

/** A longer one is no word that anyone would search for: encoded data, mostly. */
const WORD_CHARS_MAX = 64

/** Words, with what may connect them. One pass over the text; where a code ends is decided afterwards. */
const CHUNK =
  /[\p{L}\p{N}][\p{L}\p{N}\p{M}\u00AD]*(?:(?:[-./_@#+]|(?<=\p{N})[:,](?=\p{N}))[\p{L}\p{N}][\p{L}\p{N}\p{M}\u00AD]*)*/gu
const PART = /[^-./_:@#+,]+/g
const HAS_CONNECTOR = /[-./_:@#+,]/
const HAS_DIGIT = /\p{N}/u

export interface Token {
  readonly term: string
  /** Where it stands in the text. */
  readonly start: number
  readonly end: number
}

/** The terms of a text in their order, and the parts of its codes, which have no place of their own. */
export interface Terms {
  readonly body: string
  readonly parts: string
}

/** The tokens in their order. A code is one token, a compound of words is several. */
export function* tokensOf(text: string): Generator<Token> {
  for (const match of text.matchAll(CHUNK)) yield* tokensOfChunk(match[0], match.index)
}

function* tokensOfChunk(chunk: string, start: number): Generator<Token> {
  if (!HAS_CONNECTOR.test(chunk)) {
    if (chunk.length <= WORD_CHARS_MAX) yield { term: termOf(chunk), start, end: start + chunk.length }
  } else if (isCode(chunk)) yield { term: foldedForm(chunk), start, end: start + chunk.length }
  else {
    for (const part of chunk.matchAll(PART)) {
      const from = start + part.index
      if (part[0].length <= WORD_CHARS_MAX) yield { term: termOf(part[0]), start: from, end: from + part[0].length }
    }
  }
}

function isCode(chunk: string): boolean {
  return chunk.length <= WORD_CHARS_MAX && HAS_DIGIT.test(chunk)
}

/** What goes into the index for a text. */
export function termsOf(text: string): Terms {
  const body: string[] = []
  const parts: string[] = []
  for (const { term, start, end } of tokensOf(text)) {
    body.push(term)
    if (HAS_CONNECTOR.test(term)) {
      for (const [part] of text.slice(start, end).matchAll(PART)) parts.push(termOf(part))
    }
  }
  return { body: body.join(' '), parts: parts.join(' ') }
}

/** The terms of a file's name: its parts count as words, because that is what `_` and `-` stand for in names. */
export function nameTerms(name: string): string {
  const { body, parts } = termsOf(name)
  return parts === '' ? body : `${body} ${parts}`
}
