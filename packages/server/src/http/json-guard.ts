import { endOfString, ImpresarioError, LIMITS, notANumberIn } from '@impresario/protocol'

const QUOTE = 0x22
const COLON = 0x3a
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

interface Counts {
  readonly keysMax: number
  readonly containersMax: number
  readonly valuesMax: number
}

export interface JsonBounds extends Counts {
  readonly depthMax: number
  readonly stringBytesMax: number
  /** What each item of a batch may have for itself. */
  readonly item?: Counts
}

export const BODY_BOUNDS: JsonBounds = {
  depthMax: LIMITS.jsonDepthMax,
  keysMax: LIMITS.jsonKeysMax,
  containersMax: LIMITS.jsonContainersMax,
  valuesMax: LIMITS.jsonValuesMax,
  stringBytesMax: LIMITS.jsonStringBytesMax,
}

/**
 * A whole batch may have more than one body, and none of its items more than a body of its own. Its parts are worked on one
 * after the other; only parsing takes all of it at once, 25 ms for this.
 */
export const BATCH_BOUNDS: JsonBounds = {
  ...BODY_BOUNDS,
  keysMax: LIMITS.jsonKeysMax * 10,
  containersMax: LIMITS.jsonContainersMax * 5,
  valuesMax: LIMITS.jsonValuesMax * 2,
  item: BODY_BOUNDS,
}

/** Items of a batch are inside of a list that is inside of the body. */
const ITEM_DEPTH = 3

/**
 * Refuses JSON that is too deep or has too many parts, in one pass over its text and before anything is built from it: a
 * megabyte of `[]` would become 350,000 lists and stop everybody for half a second. Whether it is JSON at all is left to the
 * parser.
 */
export function checkJsonText(text: string, bounds: JsonBounds = BODY_BOUNDS): void {
  const whole = new Tally(bounds)
  const item = bounds.item === undefined ? undefined : new Tally(bounds.item)
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = endOfString(text, at)
        checkString(text, at + 1, end, bounds.stringBytesMax)
        at = end
        break
      }
      case COLON:
        whole.addKey()
        item?.addKey()
        break
      case COMMA:
        whole.addValue()
        item?.addValue()
        break
      case OPEN_LIST:
      case OPEN_OBJECT:
        depth += 1
        if (depth === ITEM_DEPTH) item?.reset()
        whole.addContainer()
        item?.addContainer()
        if (depth > bounds.depthMax) throw tooMuch(`is nested more than ${bounds.depthMax} levels deep`)
        break
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth -= 1
        break
      default:
    }
  }
}

/** Stops with the first part that is too many. */
class Tally {
  readonly #bounds: Counts
  #keys = 0
  #containers = 0
  #values = 0

  constructor(bounds: Counts) {
    this.#bounds = bounds
  }

  reset(): void {
    this.#keys = 0
    this.#containers = 0
    this.#values = 0
  }

  addKey(): void {
    this.#keys += 1
    if (this.#keys > this.#bounds.keysMax) throw tooMuch(`has more than ${this.#bounds.keysMax} keys`)
  }

  addContainer(): void {
    this.#containers += 1
    if (this.#containers > this.#bounds.containersMax) {
      throw tooMuch(`has more than ${this.#bounds.containersMax} objects and lists`)
    }
    this.addValue()
  }

  addValue(): void {
    this.#values += 1
    if (this.#values > this.#bounds.valuesMax) throw tooMuch(`has more than ${this.#bounds.valuesMax} values`)
  }
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
  const advice = 'Store large data in files and send their URLs.'
  return new ImpresarioError('LIMIT_EXCEEDED', `The body ${problem}. ${advice}`)
}

/** What to say of a text that is not JSON. The usual reason among programs is a number that JSON does not have. */
export function unreadable(text: string, otherwise: string): ImpresarioError {
  const found = notANumberIn(text)
  if (found === undefined) return new ImpresarioError('INVALID_JSON', otherwise)
  return new ImpresarioError(
    'INVALID_JSON',
    `${found.path} is ${found.word}, which JSON cannot hold. Give a finite number or null.`,
  )
}
