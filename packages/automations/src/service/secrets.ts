import { jsonObjectCopy, nextPage, storedCopy, wallTime } from '@impresario/core'
import type { Clock, Put, Random, Storage } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import type { AutomationDefinition } from '../automation/definition.ts'
import { refused } from '../pipeline/problem.ts'
import { secretNamesIn } from '../run/secrets.ts'
import { putAudit } from './audit.ts'
import type { Actor } from './audit.ts'
import type { Page } from './automations.ts'
import { escaped } from './record.ts'
import type { Vault } from './vault.ts'

/** A named secret of an owner. Its value is sealed, and no answer has it. */
export interface SecretRecord {
  readonly name: string
  readonly owner: string
  readonly sealed: string
  readonly updatedAt: number
  readonly updatedBy: string
}

export interface SecretsOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: Random
  readonly vault: Vault
}

const NAME = /^[A-Za-z_]\w{0,63}$/
const SECRETS_MAX = 1_000
/** Shorter ones could not be told from words in what tools answer. */
const CHARS_MIN = 8
const CHARS_MAX = 10_000
const CONFLICTS_MAX = 20

/** Named secrets that steps read as `secrets.NAME`. They are written and used, and never read back. */
export class Secrets {
  readonly #options: SecretsOptions

  constructor(options: SecretsOptions) {
    this.#options = options
  }

  async put(name: string, value: string, actor: Actor): Promise<SecretRecord> {
    const { storage, clock, vault } = this.#options
    mustBeSecret(name, value)
    const id = secretId(actor.id, name)
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const stored = await storage.read('secret', id)
      if (stored === undefined) await this.#mustHaveRoom(actor)
      const updatedAt = wallTime(clock)
      const record = { name, owner: actor.id, sealed: vault.seal(value, id), updatedAt, updatedBy: actor.id }
      const action = stored === undefined ? 'secret.created' : 'secret.updated'
      const put = [putSecret(record, (stored?.version ?? 0) + 1), this.#audit(record, action, actor.id)]
      if ((await storage.commit({ put })) === 'conflict') continue
      await storage.sync()
      return record
    }
    throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The secret could not be written: others changed it.')
  }

  async list(owner: string | undefined, limit: number, before?: string): Promise<Page<SecretRecord>> {
    const query = { limit, ...(owner === undefined ? {} : { owner }), ...(before === undefined ? {} : { before }) }
    const found = await this.#options.storage.list('secret', query)
    return { items: found.map(({ value }) => asSecret(value)), next: nextPage(found, limit) }
  }

  async remove(name: string, actor: Actor): Promise<void> {
    const { storage } = this.#options
    const id = secretId(actor.id, name)
    const stored = await storage.read('secret', id)
    if (stored === undefined) throw new ImpresarioError('NOT_FOUND', 'Secret not found')
    const put = [this.#audit(asSecret(stored.value), 'secret.deleted', actor.id)]
    await storage.commit({ put, drop: [{ kind: 'secret', id }] })
    await storage.sync()
  }

  /** For the call of a tool only. Those that are not there, or were sealed with another key, are left out. */
  async values(owner: string, names: readonly string[]): Promise<Readonly<Record<string, string>>> {
    const { storage, vault } = this.#options
    const values: Record<string, string> = {}
    for (const name of names) {
      const id = secretId(owner, name)
      const stored = await storage.read('secret', id)
      const value = stored === undefined ? undefined : vault.open(asSecret(stored.value).sealed, id)
      if (value !== undefined) values[name] = value
    }
    return values
  }

  /** Refuses a definition that reads a secret which is not there. */
  async mustKnow({ pipeline, triggers }: AutomationDefinition, owner: string): Promise<void> {
    for (const name of secretNamesIn([pipeline, triggers])) {
      if ((await this.#options.storage.read('secret', secretId(owner, name))) !== undefined) continue
      throw refused('pipeline', `There is no secret "${name}". Create it first, with PUT /secrets/${name}.`)
    }
  }

  async #mustHaveRoom({ id }: Actor): Promise<void> {
    const { current = 0 } = await this.#options.storage.counts('secret', { owner: id })
    if (current >= SECRETS_MAX) {
      throw new ImpresarioError('LIMIT_EXCEEDED', `There can be ${SECRETS_MAX} secrets of one owner.`)
    }
  }

  #audit({ name, owner }: SecretRecord, action: string, actor: string): Put {
    const { random, clock } = this.#options
    const entry = { id: random.id(), at: wallTime(clock), actor, action, subject: `secret/${name}`, owner }
    return putAudit({ ...entry, details: {} })
  }
}

function mustBeSecret(name: string, value: string): void {
  if (!NAME.test(name)) {
    throw refused('name', 'A secret has a name of up to 64 letters, digits and "_", which does not begin with a digit.')
  }
  if (value.length < CHARS_MIN || value.length > CHARS_MAX) {
    throw refused('value', `A secret has from ${CHARS_MIN} to ${CHARS_MAX} characters.`)
  }
}

function secretId(owner: string, name: string): string {
  return `${escaped(owner)}/${name}`
}

function putSecret(record: SecretRecord, version: number): Put {
  const { owner, name } = record
  const value = jsonObjectCopy(record, 'The secret')
  return { kind: 'secret', id: secretId(owner, name), value, version, facets: { owner, name, status: 'current' } }
}

/** Boundary: only `putSecret` has written it. */
function asSecret(value: JsonObject): SecretRecord {
  return storedCopy(value) as unknown as SecretRecord
}
