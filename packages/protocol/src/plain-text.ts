import { ImpresarioError } from './errors.ts'

/** With the flag this is one that has no other half. */
const HALF = /\p{Surrogate}/u

/**
 * Refuses a text that cannot name something in every storage. Databases cut a text at U+0000 or refuse it, and write half a
 * character (a surrogate without its other half) as another one: two names could become the same. `what` names the text in
 * the refusal, such as `idempotency_key`.
 */
export function mustBePlainText(what: string, text: string): void {
  const hasNul = text.includes('\0')
  if (!hasNul && !HALF.test(text)) return
  const found = hasNul ? 'the character U+0000' : 'half a character (a surrogate without its other half)'
  throw new ImpresarioError('INVALID_REQUEST', `"${what}" holds ${found}. Leave it out.`)
}
