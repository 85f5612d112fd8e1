import { ImpresarioError } from './errors.ts'

/** With the `u` flag this matches only lone surrogates. */
const HALF = /\p{Surrogate}/u

/**
 * Refuses a text that cannot be a name in every storage. Databases cut a text at U+0000 or refuse it, and replace a
 * lone surrogate by another character: two names could become the same. `what` names the text in the error, such as
 * `idempotency_key`.
 */
export function mustBePlainText(what: string, text: string): void {
  const hasNul = text.includes('\0')
  if (!hasNul && !HALF.test(text)) return
  const found = hasNul ? 'the character U+0000' : 'half a character (a surrogate without its other half)'
  throw new ImpresarioError('INVALID_REQUEST', `"${what}" holds ${found}. Leave it out.`)
}
