import type { Clock, Put, Storage } from '@impresario/core'
import { ImpresarioError, LIMITS, mustBePlainText } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { fingerprintOf, formerFingerprintOf } from './fingerprint.ts'

export interface KeyBookOptions {
  readonly storage: Storage
  readonly clock: Clock
  /** How long a key is remembered from its first use. */
  readonly keyMs?: number | undefined
}

/** A key that a client gave to a request, so that the same request once more is known as such. */
export interface ClientKey {
  readonly clientId: string
  readonly key: string
}

/** A use of a key: what it is stored under, and the mark of what was asked with it. */
export interface KeyUse {
  readonly id: string
  readonly key: string
  readonly fingerprint: string
  /** The mark that earlier versions made of it. Keys that they stored are known by it for the rest of their time. */
  readonly former: string | undefined
}

/** The idempotency keys of all clients. */
export class KeyBook {
  readonly #options: KeyBookOptions

  constructor(options: KeyBookOptions) {
    this.#options = options
  }

  /** `words`: all that the request says. `former`: what of it earlier versions made their mark of. */
  use({ clientId, key }: ClientKey, words: JsonObject, former?: JsonObject): KeyUse {
    mustBeKey(key)
    return {
      id: keyIdOf(clientId, key),
      key,
      fingerprint: fingerprintOf(words),
      former: former && formerFingerprintOf(former),
    }
  }

  /** What the key stands for, if it was used before; refused when that was for another request. */
  async find({ id, key, fingerprint, former }: KeyUse): Promise<string | undefined> {
    const known = (await this.#options.storage.read('key', id))?.value
    if (known === undefined) return undefined
    if (known.fingerprint === fingerprint || known.fingerprint === former) return known.jobId
    throw new ImpresarioError(
      'IDEMPOTENCY_KEY_REUSED',
      `The idempotency key "${key}" was already used for a different request. Use a new key for each new request.`,
    )
  }

  /** To be written in the commit that does what was asked. It conflicts when the key has been used meanwhile. */
  put({ id, fingerprint }: KeyUse, standsFor: string): Put {
    const { clock, keyMs = LIMITS.idempotencyKeyMs } = this.#options
    const value = { jobId: standsFor, fingerprint, createdAt: clock.now() }
    return { kind: 'key', id, version: 1, value, expiresMs: keyMs }
  }
}

export function mustBeKey(key: string): void {
  mustBePlainText('idempotency_key', key)
  if (key !== '' && key.length <= LIMITS.idempotencyKeyCharsMax) return
  throw new ImpresarioError(
    'INVALID_REQUEST',
    `The idempotency key must have from 1 to ${LIMITS.idempotencyKeyCharsMax} characters.`,
  )
}

/** Escaped, so that no client's name and key together read like those of another. */
export function keyIdOf(clientId: string, key: string): string {
  return `${clientId.replaceAll('%', '%25').replaceAll('/', '%2F')}/${key}`
}
