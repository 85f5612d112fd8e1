import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { wallTime } from '@impresario/core'
import type { Clock, Put, Records, Storage } from '@impresario/core'
import { ImpresarioError, LIMITS } from '@impresario/protocol'
import type { TokenReply } from '@impresario/protocol'

type TokenRecord = Records['token']
type Owner = Pick<TokenRecord, 'workerId' | 'credential' | 'family' | 'isSelfRenewing'>

/** Who signs in, and how. */
export interface SignIn {
  /** `undefined`: one of those that share the credential, which does not say which one it is. */
  readonly workerId: string | undefined
  readonly credential: string
  readonly isSelfRenewing: boolean
}

export interface AccessTokensOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly accessMs: number
  readonly refreshMs: number
}

/**
 * Short-lived tokens of workers. Only hashes are stored, so that who reads the storage cannot use them.
 *
 * A sign-in begins a family: an access token and a refresh token. A refresh token is used once and gives the next pair of
 * its family. A second use means that there is a copy, and it is not known which one is stolen: the whole family ends, and the
 * worker signs in again with its own credential.
 *
 * Workers of the releases that know no refresh tokens forget the credential with which they signed in, and ask for the
 * next access token with the present one. Their families get no refresh tokens; an access token gives the next one while it
 * lasts. They end with their credential, with `DELETE /auth/token`, and with the lifetime of a token that is not renewed.
 */
export class AccessTokens {
  readonly #options: AccessTokensOptions

  constructor(options: AccessTokensOptions) {
    this.#options = options
  }

  /** A new family. Durable when this resolves. */
  async issue({ workerId, credential, isSelfRenewing }: SignIn): Promise<TokenReply> {
    const pair = this.#pair({
      ...(workerId === undefined ? {} : { workerId }),
      credential,
      family: randomUUID(),
      ...(isSelfRenewing ? { isSelfRenewing } : {}),
    })
    await this.#commit(pair.put)
    return pair.reply
  }

  /** The next access token for a present one; `undefined` when it is of a family that has refresh tokens, or of none. */
  async renew(hash: Buffer, isCurrent: (record: TokenRecord) => boolean = () => true): Promise<TokenReply | undefined> {
    const found = await this.find(hash)
    if (found?.isSelfRenewing !== true || !isCurrent(found)) return undefined
    const { use: _use, expiresAt: _expiresAt, ...owner } = found
    const pair = this.#pair(owner)
    await this.#commit(pair.put)
    return pair.reply
  }

  /** The access token with this hash, while it lasts. */
  async find(hash: Buffer): Promise<TokenRecord | undefined> {
    const found = (await this.#options.storage.read('token', hash.toString('hex')))?.value
    if (found?.use !== 'access' || found.expiresAt <= wallTime(this.#options.clock)) return undefined
    return found
  }

  /** The next pair for a refresh token. `isCurrent` says whether what the worker signed in with still opens the door. */
  async refresh(
    token: string,
    hinted: string | undefined,
    isCurrent: (record: TokenRecord) => boolean,
  ): Promise<TokenReply> {
    const { storage, clock } = this.#options
    const id = hashOf(token)
    const stored = await storage.read('token', id)
    const record = stored?.value
    const isOver = record === undefined || record.expiresAt <= wallTime(clock)
    if (stored === undefined || record?.use !== 'refresh' || isOver) throw refused('not found')
    if (hinted !== undefined && hinted !== record.workerId) throw refused('owner mismatch')
    if (!isCurrent(record)) {
      await this.revokeFamily(record.family)
      throw refused('its credential was removed')
    }
    const { use: _use, expiresAt: _expiresAt, usedAt: _usedAt, ...owner } = record
    const pair = this.#pair(owner)
    const used: Put = {
      kind: 'token',
      id,
      value: { ...record, usedAt: wallTime(clock) },
      version: stored.version + 1,
      facets: facetsOf(record),
      expiresMs: record.expiresAt - wallTime(clock),
    }
    const isFirst = record.usedAt === undefined && (await this.#commit([used, ...pair.put])) === 'committed'
    if (isFirst) return pair.reply
    await this.revokeFamily(record.family)
    throw refused('already used; its whole family is revoked')
  }

  revokeFamily(family: string): Promise<number> {
    return this.#revoke({ name: family })
  }

  /** Every token of a worker. */
  revokeWorker(workerId: string): Promise<number> {
    return this.#revoke({ owner: workerId })
  }

  async #revoke(facets: { readonly name: string } | { readonly owner: string }): Promise<number> {
    const { storage } = this.#options
    let revoked = 0
    for (;;) {
      const found = await storage.list('token', { ...facets, limit: LIMITS.pageSizeMax })
      if (found.length === 0) break
      await storage.commit({ drop: found.map(({ id }) => ({ kind: 'token', id })) })
      revoked += found.length
    }
    await storage.sync()
    return revoked
  }

  async #commit(put: readonly Put[]): Promise<'committed' | 'conflict'> {
    const outcome = await this.#options.storage.commit({ put })
    await this.#options.storage.sync()
    return outcome
  }

  #pair(owner: Owner): { put: readonly Put[]; reply: TokenReply } {
    const { accessMs, refreshMs } = this.#options
    const access = newToken()
    const reply: TokenReply = {
      access_token: access,
      token_type: 'Bearer',
      expires_in: Math.floor(accessMs / 1_000),
      worker_id: owner.workerId ?? null,
    }
    const put = [this.#put(access, 'access', accessMs, owner)]
    if (owner.isSelfRenewing === true) return { put, reply }
    const refresh = newToken()
    return {
      put: [...put, this.#put(refresh, 'refresh', refreshMs, owner)],
      reply: { ...reply, refresh_token: refresh, refresh_expires_in: Math.floor(refreshMs / 1_000) },
    }
  }

  #put(token: string, use: TokenRecord['use'], expiresMs: number, owner: Owner): Put {
    const value: TokenRecord = { ...owner, use, expiresAt: wallTime(this.#options.clock) + expiresMs }
    return { kind: 'token', id: hashOf(token), value, version: 1, facets: facetsOf(value), expiresMs }
  }
}

const TOKEN_BYTES = 32

function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url')
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

function facetsOf({ workerId, family, use }: TokenRecord): { owner?: string; name: string; status: string } {
  return { ...(workerId === undefined ? {} : { owner: workerId }), name: family, status: use }
}

function refused(why: string): ImpresarioError {
  return new ImpresarioError('FORBIDDEN', `Invalid refresh token (${why})`)
}
