import { ImpresarioError, LIMITS, stringifyExact } from '@impresario/protocol'

/**
 * What the values of expressions may have together, in characters of JSON. A definition of 100 kB can name the same value ten thousand times: filled in
 * without a bound it took gigabytes before anybody looked at its size.
 */
export class Allowance {
  #left: number = LIMITS.contextBytesMax

  /** Gives the value, if there is room for it. */
  take<T>(value: T): T {
    if (this.#left >= 0) this.#left -= typeof value === 'string' ? value.length : stringifyExact(value).length
    if (this.#left >= 0) return value
    const message = `The values that templates and conditions read may have ${LIMITS.contextBytesMax} characters together. Read what is needed of them, such as \${params.id} and not \${params}.`
    throw new ImpresarioError('LIMIT_EXCEEDED', message)
  }
}
