import { createHmac } from 'node:crypto'
import { wallTime } from '@impresario/core'
import type { Clock } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { sameSecret } from '../runtime/secret.ts'
import type { SecretKey } from '../config/secret-key.ts'

/** Recorded as the decider when a person without a token used a link. */
export const LINK_HOLDER = 'somebody with a link'

/** What a capability permits: to decide one question of one job, once; perhaps in one way only. */
export interface Permission {
  readonly jobId: string
  /** Names the question: a decision ends the visit, so what was used once fits nothing any more. */
  readonly visit: number
  readonly decision?: string | undefined
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

const TEXT = /^c1\.(?<visit>\d{1,9})\.(?<expires>\d{1,12})\.(?<decision>[\w-]{0,1100})\.(?<signature>[\w-]{43})$/

/** Signed permissions that can be given to people without a token, such as in a link of a mail. */
export class Capabilities {
  readonly #key: Buffer
  readonly #clock: Clock

  constructor(key: SecretKey, clock: Clock) {
    this.#key = key.derive('capability')
    this.#clock = clock
  }

  issue({ jobId, visit, decision, expiresAt }: Permission): string {
    const said = `c1.${visit}.${Math.floor(expiresAt / 1_000)}.${Buffer.from(decision ?? '').toString('base64url')}`
    return `${said}.${this.#sign(jobId, said)}`
  }

  /** Refuses what we did not sign for this job, and what is too old. */
  check(capability: string, jobId: string): Permission {
    const parts = TEXT.exec(capability)?.groups
    const signature = parts?.['signature'] ?? ''
    const said = capability.slice(0, -signature.length - 1)
    if (parts === undefined || !sameSecret(signature, this.#sign(jobId, said))) {
      throw new ImpresarioError('UNAUTHENTICATED', 'This link is not valid. Was all of it copied? Ask for a new one.')
    }
    const expiresAt = Number(parts['expires']) * 1_000
    if (wallTime(this.#clock) >= expiresAt) {
      throw new ImpresarioError('UNAUTHENTICATED', 'This link is too old. Ask for a new one.')
    }
    const decision = Buffer.from(parts['decision'] ?? '', 'base64url').toString()
    return { jobId, visit: Number(parts['visit']), expiresAt, ...(decision === '' ? {} : { decision }) }
  }

  #sign(jobId: string, said: string): string {
    return createHmac('sha256', this.#key).update(`${jobId}\n${said}`).digest('base64url')
  }
}
