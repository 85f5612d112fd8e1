import { createHmac } from 'node:crypto'
import { wallTime } from '@impresario/core'
import type { Clock } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { SecretKey } from '../config/secret-key.ts'
import { sameSecret } from '../runtime/secret.ts'

/** What a link permits: to read or to write one file of one job, until a moment. */
export interface FileGrant {
  readonly jobId: string
  readonly name: string
  readonly method: 'GET' | 'PUT'
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

const TEXT = /^f1\.(?<method>GET|PUT)\.(?<expires>\d{1,12})\.(?<signature>[\w-]{43})$/

/** Signed permissions for one file, for programs and people without a token. */
export class FileLinks {
  readonly #key: Buffer
  readonly #clock: Clock

  constructor(key: SecretKey, clock: Clock) {
    this.#key = key.derive('file-link')
    this.#clock = clock
  }

  issue({ jobId, name, method, expiresAt }: FileGrant): string {
    const said = `f1.${method}.${Math.ceil(expiresAt / 1_000)}`
    return `${said}.${this.#sign(said, jobId, name)}`
  }

  /** Refuses what we did not sign for this file, and what is too old. */
  check(capability: string, wanted: Omit<FileGrant, 'expiresAt'>): void {
    const parts = TEXT.exec(capability)?.groups
    const signature = parts?.['signature'] ?? ''
    const said = capability.slice(0, -signature.length - 1)
    const isOurs = parts !== undefined && sameSecret(signature, this.#sign(said, wanted.jobId, wanted.name))
    if (!isOurs || parts['method'] !== wanted.method) {
      throw new ImpresarioError('UNAUTHENTICATED', 'This link is not valid. Was all of it copied? Ask for a new one.')
    }
    if (wallTime(this.#clock) >= Number(parts['expires']) * 1_000) {
      throw new ImpresarioError('UNAUTHENTICATED', 'This link is too old. Ask for a new one.')
    }
  }

  #sign(said: string, jobId: string, name: string): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([said, jobId, name]))
      .digest('base64url')
  }
}
