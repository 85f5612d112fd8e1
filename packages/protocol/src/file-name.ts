import { ImpresarioError } from './errors.ts'
import { LIMITS } from './limits.ts'

/** Control characters, what XML cannot carry (S3 lists keys as XML), and the separator of other systems. */
// oxlint-disable-next-line no-control-regex
const REFUSED = /[\u0000-\u001F\u007F-\u009F\\\uFFFE\uFFFF]/u
const HALF = /\p{Surrogate}/u

/**
 * Why a text cannot name a file; nothing if it can. Names are paths with `/`, such as `in/report.pdf`. A name stays as it was
 * written: nothing is decoded, so that `%2e%2e` is a name of six characters.
 */
export function fileNameProblem(name: string): string | undefined {
  if (name === '') return 'is empty'
  if (name.length > LIMITS.fileKeyBytesMax || utf8Bytes(name) > LIMITS.fileKeyBytesMax) {
    return `has more than ${LIMITS.fileKeyBytesMax} bytes`
  }
  if (REFUSED.test(name)) return 'holds a control character or a backslash'
  if (HALF.test(name)) return 'holds half a character (a surrogate without its other half)'
  for (const part of name.split('/')) {
    if (part === '') return 'begins or ends with "/", or has two of them in a row'
    if (part === '.' || part === '..') return `has the part "${part}"`
  }
  return undefined
}

/** Refuses a text that cannot name a file. `what` names the text in the refusal, such as `filename`. */
export function mustBeFileName(what: string, name: string): void {
  const problem = fileNameProblem(name)
  if (problem === undefined) return
  throw new ImpresarioError('INVALID_REQUEST', `"${what}" ${problem}. Use a path such as "in/report.pdf".`)
}

function utf8Bytes(text: string): number {
  return new TextEncoder().encode(text).byteLength
}
