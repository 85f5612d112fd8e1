import { invalid } from '../config/config.ts'
import { hashToken } from '../runtime/secret.ts'
import type { TokenHash } from '../runtime/secret.ts'
import { weaknessOf, WELL_KNOWN } from './weak-token.ts'

/** In a table of clients or workers: one of them, or several while a token is changed. */
export const TOKEN_KEYS = ['token', 'tokens', 'token_sha256', 'tokens_sha256'] as const

const HOW_TO_CHOOSE = 'Choose a long random one, such as openssl rand -base64 24 prints, or set API_HOST to 127.0.0.1.'

/** At 1,000 guesses a second, 16 random letters and digits last longer than the sun; 8 would last 90 years, a word a day. */
const TOKEN_CHARS_MIN = 16
/** Together with all the other headers a token must fit into 16 KiB. */
const TOKEN_CHARS_MAX = 1_024
/** More than an old and a new one is a mistake or a leak. */
const TOKENS_MAX = 8

export interface TableTokens {
  readonly hashes: readonly TokenHash[]
  /** Those that the file holds as they are; all others are known by their hash only. */
  readonly plain: readonly string[]
}

/** Hashes tokens on their way in; a token that two parties share would make one of them the other. */
export class TokenBook {
  readonly #isExposed: boolean
  readonly #owners = new Map<string, string>()

  constructor(isExposed: boolean) {
    this.#isExposed = isExposed
  }

  /** All tokens of one table. Messages name the place and never the token. */
  read(at: string, table: Readonly<Record<string, unknown>>): TableTokens {
    const hashes: TokenHash[] = []
    const plain: string[] = []
    for (const key of TOKEN_KEYS) {
      for (const [place, text] of textsIn(`${at}.${key}`, table[key], key.startsWith('tokens'))) {
        if (key.endsWith('sha256')) {
          hashes.push(this.addHash(place, text))
        } else {
          hashes.push(this.add(place, text))
          plain.push(text)
        }
      }
    }
    if (hashes.length === 0) {
      throw invalid(`${at}.token is missing. Write a long random text, or its SHA-256 in hex as token_sha256.`)
    }
    if (hashes.length > TOKENS_MAX) {
      throw invalid(`${at} has ${hashes.length} tokens. At most ${TOKENS_MAX} may be valid.`)
    }
    return { hashes, plain }
  }

  add(place: string, token: string): TokenHash {
    if (!HEADER_TEXT.test(token) || token.length > TOKEN_CHARS_MAX) {
      throw invalid(
        `${place} must be 1 to ${TOKEN_CHARS_MAX} plain characters (no line breaks, no letters beyond ASCII, no space ` +
          'at its ends), because it travels in a header.',
      )
    }
    if (this.#isExposed && token.length < TOKEN_CHARS_MIN && !WELL_KNOWN.has(token.toLowerCase())) {
      throw invalid(
        `${place} has ${token.length} characters, which can be guessed from the network. It must have at least ` +
          `${TOKEN_CHARS_MIN}. ${HOW_TO_CHOOSE}`,
      )
    }
    const weakness = this.#isExposed ? weaknessOf(token) : undefined
    if (weakness !== undefined) throw invalid(`${place} ${weakness}. ${HOW_TO_CHOOSE}`)
    return this.#own(place, hashToken(token))
  }

  addHash(place: string, hex: string): TokenHash {
    if (!SHA256_HEX.test(hex)) {
      throw invalid(`${place} must be 64 hexadecimal digits: the SHA-256 of the token, such as sha256sum prints it.`)
    }
    const hash = Buffer.from(hex, 'hex')
    for (const word of this.#isExposed ? WELL_KNOWN : []) {
      if (!hash.equals(hashToken(word))) continue
      throw invalid(`${place} is the hash of a well-known default that is easy to guess. ${HOW_TO_CHOOSE}`)
    }
    return this.#own(place, hash)
  }

  #own(place: string, hash: TokenHash): TokenHash {
    const key = hash.toString('latin1')
    const other = this.#owners.get(key)
    if (other !== undefined) throw invalid(`${place} is the same as ${other}. Every token must be a different one.`)
    this.#owners.set(key, place)
    return hash
  }
}

const HEADER_TEXT = /^[\u0021-\u007E](?:[\u0020-\u007E]*[\u0021-\u007E])?$/
const SHA256_HEX = /^[\da-f]{64}$/i

function* textsIn(place: string, value: unknown, isList: boolean): Generator<readonly [string, string]> {
  if (value === undefined) return
  if (!isList) {
    if (typeof value !== 'string' || value.trim() === '') throw invalid(`${place} must be a text that is not empty.`)
    yield [place, value]
    return
  }
  if (!Array.isArray(value) || value.length === 0) {
    throw invalid(`${place} must be a list of texts, such as ["…", "…"].`)
  }
  for (const [index, one] of value.entries()) {
    if (typeof one !== 'string' || one.trim() === '') {
      throw invalid(`${place}[${index}] must be a text that is not empty.`)
    }
    yield [`${place}[${index}]`, one]
  }
}
