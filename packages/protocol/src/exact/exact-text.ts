import { ImpresarioError } from '../errors.ts'
import { LIMITS } from '../limits.ts'
import { isNumberText, numberFrom } from './exact-number.ts'
import { endOfString } from './json-scan.ts'
import { pathAt } from './text-path.ts'

/*
 * Storages, and everything between them and the edges, keep plain JSON. A number that a double would alter travels there as a
 * text that begins with MARK; a text that begins with MARK by itself has it twice. U+FDD0 is no character and never will be
 * one, so that hardly any text begins with it.
 */
export const MARK = '\uFDD0'

/** Whether a text represents a number. */
export function isMarkedNumber(text: string): boolean {
  return text.startsWith(MARK) && text.length <= LIMITS.jsonNumberCharsMax + 1 && isNumberText(text.slice(1))
}

/** The text in its stored form. */
export function markedText(text: string): string {
  return text.startsWith(MARK) ? MARK + text : text
}

/** The original of a stored text; not for one that represents a number. */
export function unmarkedText(text: string): string {
  return text.startsWith(MARK + MARK) ? text.slice(1) : text
}

/**
 * Matches numbers that `JSON.parse` might alter, and texts that begin with the mark. A scan of the whole text, at 2 µs
 * per kilobyte, that may find too much but never too little: up to 15 digits without an exponent are always safe.
 */
const SUSPECT = /(?<=^|[\s:,[])-?(?:[\d.]{16}|\d[\d.]*[eE]|(?<=-)0(?!\.\d*[1-9]))|\uFDD0|\\u[fF][dD][dD]0/

/**
 * JSON text in which every number that a double would alter is replaced by a marked text. The parser decides whether it
 * is valid JSON. Refuses numbers that cannot be processed: those beyond the range of doubles, and those with thousands
 * of digits.
 */
export function exactText(text: string): string {
  return SUSPECT.test(text) ? rewritten(text, keptNumber) : text
}

/** JSON text in which every number is replaced by a marked text, exactly as written. */
export function literalText(text: string): string {
  return rewritten(text, (literal) => (isNumberText(literal) ? `"${MARK}${literal}"` : undefined))
}

/** The replacement of a number; `undefined`: it stays. */
function keptNumber(literal: string, text: string, at: number): string | undefined {
  if (isSurelyPlain(literal) || !isNumberText(literal)) return undefined
  if (literal.length > LIMITS.jsonNumberCharsMax) {
    throw new ImpresarioError(
      'LIMIT_EXCEEDED',
      `${pathAt(text, at)} is a number of ${literal.length} characters. At most ${LIMITS.jsonNumberCharsMax} are allowed.`,
    )
  }
  const number = numberFrom(literal)
  if (number === 'overflow') {
    throw new ImpresarioError(
      'LIMIT_EXCEEDED',
      `${pathAt(text, at)} is ${shortened(literal)}, which is beyond the range of numbers (about 1.8e308). Give a smaller number.`,
    )
  }
  if (typeof number !== 'number') return `"${MARK}${literal}"`
  return Object.is(number, -0) ? `"${MARK}-0"` : undefined
}

/**
 * For most numbers a short check is enough: few digits, or exactly the digits that JavaScript writes for the double.
 */
function isSurelyPlain(literal: string): boolean {
  if (literal.length <= SHORT_CHARS) return !HAS_POWER.test(literal) && !literal.startsWith('-0')
  const number = Number(literal)
  return String(number) === literal && (literal.includes('.') || Number.isSafeInteger(number))
}

const HAS_POWER = /[eE]/
const SHORT_CHARS = 15
const SHOWN_CHARS = 40

function shortened(literal: string): string {
  return literal.length <= SHOWN_CHARS ? literal : `${literal.slice(0, SHOWN_CHARS)}…`
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const PLUS = 0x2b
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const LARGE_E = 0x45
const SMALL_E = 0x65

type Replace = (literal: string, text: string, at: number) => string | undefined

/** Scans everything outside of strings. Keys are not changed. */
function rewritten(text: string, replace: Replace): string {
  let made = ''
  let from = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const end = endOfString(text, at)
      if (beginsWithMark(text, at + 1) && !isKey(text, end)) {
        made += text.slice(from, at + 1) + MARK
        from = at + 1
      }
      at = end
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      const end = endOfNumber(text, at)
      const other = replace(text.slice(at, end), text, at)
      if (other !== undefined) {
        made += text.slice(from, at) + other
        from = end
      }
      at = end - 1
    }
  }
  return from === 0 ? text : made + text.slice(from)
}

/** JSON text in which marked texts are replaced by numbers again. */
export function plainText(text: string): string {
  if (!text.includes(MARK)) return text
  let made = ''
  let from = 0
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) {
    const end = endOfString(text, at)
    if (text.startsWith(MARK, at + 1) && !isKey(text, end)) {
      const inner = text.slice(at + 1, end)
      if (isMarkedNumber(inner)) {
        made += text.slice(from, at) + inner.slice(1)
        from = end + 1
      } else if (inner.startsWith(MARK + MARK)) {
        made += text.slice(from, at + 1)
        from = at + 2
      }
    }
    at = end
  }
  return made + text.slice(from)
}

function beginsWithMark(text: string, at: number): boolean {
  if (text.startsWith(MARK, at)) return true
  return text.charCodeAt(at) === BACKSLASH && text.slice(at, at + 6).toLowerCase() === String.raw`\ufdd0`
}

/** Whether a colon follows the string that ends there. */
function isKey(text: string, end: number): boolean {
  let next = end + 1
  while (next < text.length && text.charCodeAt(next) <= 0x20) next += 1
  return text.charCodeAt(next) === COLON
}

function endOfNumber(text: string, start: number): number {
  let end = start + 1
  while (end < text.length && isOfNumber(text.charCodeAt(end))) end += 1
  return end
}

function isOfNumber(code: number): boolean {
  if (code >= ZERO && code <= NINE) return true
  return code === POINT || code === MINUS || code === PLUS || code === SMALL_E || code === LARGE_E
}
