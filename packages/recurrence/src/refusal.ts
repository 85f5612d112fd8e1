import { ImpresarioError } from '@impresario/protocol'

/** A schedule that cannot be read. `field` says which part is wrong, the message says what is wrong and what is right. */
export function refusal(field: string, message: string): ImpresarioError {
  return new ImpresarioError('INVALID_REQUEST', message, { details: { field } })
}

/** The given input, shortened for a message. */
export function quoted(text: string): string {
  const line = text.replaceAll(/\p{C}/gu, '?')
  return line.length > 60 ? `"${line.slice(0, 57)}…"` : `"${line}"`
}
