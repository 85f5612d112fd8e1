import { ImpresarioError, LIMITS } from '@impresario/protocol'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

export interface JsonBounds {
  readonly depthMax: number
  readonly keysMax: number
  readonly stringBytesMax: number
}

export const BODY_BOUNDS: JsonBounds = {
  depthMax: LIMITS.jsonDepthMax,
  keysMax: LIMITS.jsonKeysMax,
  stringBytesMax: LIMITS.jsonStringBytesMax,
}

/** A batch is bounded by its bytes and its items; its keys add up over all of them. */
export const BATCH_BOUNDS: JsonBounds = { ...BODY_BOUNDS, keysMax: LIMITS.jsonKeysMax * 20 }

/**
 * Refuses JSON that is too deep or too wide, in one pass over its text and before anything is built from it. Whether
 * it is JSON at all is left to the parser.
 */
export function checkJsonText(text: string, bounds: JsonBounds = BODY_BOUNDS): void {
  let depth = 0
  let keys = 0
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = endOfString(text, at)
        checkString(text, at + 1, end, bounds.stringBytesMax)
        at = end
        break
      }
      case COLON:
        keys += 1
        break
      case OPEN_LIST:
      case OPEN_OBJECT:
        depth += 1
        if (depth > bounds.depthMax) throw tooMuch(`is nested more than ${bounds.depthMax} levels deep`)
        break
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth -= 1
        break
      default:
    }
  }
  if (keys > bounds.keysMax) throw tooMuch(`has more than ${bounds.keysMax} keys`)
}

/** The position of the closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1
    if (slashes % 2 === 0) return end
    end = text.indexOf('"', end + 1)
  }
  return text.length
}

function checkString(text: string, start: number, end: number, bytesMax: number): void {
  const chars = end - start
  // A character of UTF-16 takes at most three bytes of UTF-8.
  if (chars * 3 <= bytesMax) return
  if (chars > bytesMax || Buffer.byteLength(text.slice(start, end)) > bytesMax) {
    throw tooMuch(`has a string of more than ${bytesMax} bytes`)
  }
}

function tooMuch(problem: string): ImpresarioError {
  return new ImpresarioError('LIMIT_EXCEEDED', `The body ${problem}.`)
}
