import { wallTime } from '@impresario/core'
import type { Clock, Storage } from '@impresario/core'
import { doubleOf, ImpresarioError, isJsonObject, LIMITS, verifyMessage } from '@impresario/protocol'

export interface SignaturesOptions {
  readonly storage: Storage
  readonly clock: Clock
  /** What a worker signs with; `undefined` for one that does not sign. */
  readonly secretsOf: (workerId: string) => readonly string[] | undefined
}

/** `unsigned`: this worker need not sign. `repeated`: the very same message has been taken before. */
export type Freshness = 'unsigned' | 'fresh' | 'repeated'

/**
 * Checks the signatures of the workers that must sign: who signed (403 for another), whether the signature is right (401),
 * whether it is of this moment (403), and whether it was seen before.
 *
 * A message is known again by its signature, never by a nonce beside it: what stands in `security` is not signed, so a
 * thief could change it. A nonce in `metadata` is signed, and makes messages of the same second differ.
 */
export class Signatures {
  readonly #options: SignaturesOptions

  constructor(options: SignaturesOptions) {
    this.#options = options
  }

  /** `body` is what came of parsing `text`, the message as the worker sent it: its signature covers the text. */
  async check(
    workerId: string | undefined,
    body: unknown,
    text: string | undefined,
    ignore: readonly string[] = [],
  ): Promise<Freshness> {
    const secrets = workerId === undefined ? undefined : this.#options.secretsOf(workerId)
    if (workerId === undefined || secrets === undefined) return 'unsigned'
    const { signature, signer, timestamp } = readSigned(body)
    if (signer !== workerId) throw forbidden(`The message is signed by another worker than ${workerId}.`, 'identity')
    if (!(await isSignedByOne(text ?? '{}', secrets, signature, ignore))) {
      throw new ImpresarioError('UNAUTHENTICATED', 'The signature does not match the message.')
    }
    const { clock } = this.#options
    const now = wallTime(clock)
    if (Math.abs(Math.floor(now / 1_000) - timestamp) > LIMITS.signatureWindowMs / 1_000) {
      throw forbidden('The message is too old or from the future. Set the clock of the worker.')
    }
    return this.#isNew(`${workerId}:${signature.toLowerCase()}`, now)
  }

  /** Known for as long as its timestamp could still be good: it may come from the future by a whole window. */
  async #isNew(id: string, now: number): Promise<Freshness> {
    const { storage } = this.#options
    const expiresMs = 2 * LIMITS.signatureWindowMs + 2_000
    const taken = await storage.commit({ put: [{ kind: 'nonce', id, value: { at: now }, version: 1, expiresMs }] })
    await storage.sync()
    return taken === 'committed' ? 'fresh' : 'repeated'
  }
}

/** For messages that must not have an effect twice. */
export function refuseRepeated(freshness: Freshness): void {
  if (freshness === 'repeated') throw forbidden('The same signed message has been taken before.', 'replay')
}

interface Signed {
  readonly signature: string
  readonly signer: string
  readonly timestamp: number
}

function readSigned(body: unknown): Signed {
  const message = isJsonObject(body) ? body : undefined
  const security = isJsonObject(message?.['security']) ? message['security'] : undefined
  const signature = security?.['signature']
  const signer = security?.['signer_id']
  const timestamp = doubleOf(message?.['timestamp'])
  if (message === undefined || typeof signature !== 'string' || typeof signer !== 'string') {
    throw new ImpresarioError('UNAUTHENTICATED', 'This worker must sign: security.signature and signer_id are missing.')
  }
  if (timestamp === undefined) {
    throw new ImpresarioError('UNAUTHENTICATED', 'A signed message needs a timestamp in seconds.')
  }
  return { signature, signer, timestamp }
}

/** While a token is changed there are two of them. All are tried, whichever is right. */
async function isSignedByOne(
  text: string,
  secrets: readonly string[],
  signature: string,
  ignore: readonly string[],
): Promise<boolean> {
  const verdicts = await Promise.all(secrets.map((secret) => verifyMessage(text, secret, signature, ignore)))
  return verdicts.includes(true)
}

function forbidden(message: string, reason?: 'replay' | 'identity'): ImpresarioError {
  return new ImpresarioError('FORBIDDEN', message, reason === undefined ? {} : { details: { reason } })
}
