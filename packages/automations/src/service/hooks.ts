import { jsonObjectCopy, nextPage, storedCopy, wallTime } from '@impresario/core'
import type { Clock, Put, Random, Storage } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import type { DataObject, JsonObject } from '@impresario/protocol'
import type { AutomationDefinition } from '../automation/definition.ts'
import { refused } from '../pipeline/problem.ts'
import { putAudit } from './audit.ts'
import type { Actor } from './audit.ts'
import type { Page } from './automations.ts'
import { readHook } from './hook-spec.ts'
import type { HookSpec } from './hook-spec.ts'
import { asSubscription, escaped, hookBucket } from './record.ts'
import type { Vault } from './vault.ts'

/** A source of inbound webhooks. Its address is known to its sender only, and so is its secret. */
export interface HookRecord extends HookSpec {
  readonly name: string
  readonly owner: string
  /** The last part of its URL. */
  readonly address: string
  readonly sealed: string
  readonly createdAt: number
  readonly updatedAt: number
  readonly updatedBy: string
}

export interface HooksOptions {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: Random
  readonly vault: Vault
}

const HOOKS_MAX = 1_000
const CONFLICTS_MAX = 20

/** Sources of inbound webhooks: named, each with an address and a secret that is never given out again. */
export class Hooks {
  readonly #options: HooksOptions

  constructor(options: HooksOptions) {
    this.#options = options
  }

  /** Creates it, or changes the one of this name. `secret`: the one that was made here, which is shown this once. */
  async put(
    name: string,
    body: DataObject,
    actor: Actor,
  ): Promise<{ readonly record: HookRecord; readonly secret: string | undefined }> {
    const { storage, clock, vault } = this.#options
    const { secret: given, ...spec } = readHook(name, body)
    const id = hookId(actor.id, name)
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const stored = await storage.read('hook', id)
      const known = stored === undefined ? undefined : asHook(stored.value)
      if (known === undefined) await this.#mustHaveRoom(actor)
      const made = given === undefined && known === undefined ? newSecret(vault, spec.preset) : undefined
      const secret = given ?? made
      const at = wallTime(clock)
      const record: HookRecord = {
        ...spec,
        name,
        owner: actor.id,
        address: known?.address ?? vault.secret(),
        sealed: secret === undefined ? (known?.sealed ?? '') : vault.seal(secret, id),
        createdAt: known?.createdAt ?? at,
        updatedAt: at,
        updatedBy: actor.id,
      }
      const action = known === undefined ? 'hook.created' : 'hook.updated'
      const put = [...putHook(record, stored?.version), this.#audit(record, action, actor.id)]
      if ((await storage.commit({ put })) === 'conflict') continue
      await storage.sync()
      return { record, secret: made }
    }
    throw new ImpresarioError('STORAGE_UNAVAILABLE', 'The source could not be written: others changed it.')
  }

  async read(name: string, actor: Actor): Promise<HookRecord> {
    const stored = await this.#options.storage.read('hook', hookId(actor.id, name))
    if (stored === undefined) throw new ImpresarioError('NOT_FOUND', 'Source of webhooks not found')
    return asHook(stored.value)
  }

  async list(owner: string | undefined, limit: number, before?: string): Promise<Page<HookRecord>> {
    const query = { limit, ...(owner === undefined ? {} : { owner }), ...(before === undefined ? {} : { before }) }
    const found = await this.#options.storage.list('hook', { ...query, status: 'current' })
    return { items: found.map(({ value }) => asHook(value)), next: nextPage(found, limit) }
  }

  /** Only one that no automation listens to by its name. */
  async remove(name: string, actor: Actor): Promise<void> {
    const { storage } = this.#options
    const record = await this.read(name, actor)
    const [user] = await storage.list('subscription', { owner: actor.id, name: hookBucket(name), limit: 1 })
    if (user !== undefined) {
      const { automationId } = asSubscription(user.value)
      throw new ImpresarioError('CONFLICT', `The automation ${automationId} listens to this source. Change it first.`)
    }
    const drop = [hookId(actor.id, name), addressId(record.address)].map((id) => ({ kind: 'hook', id }) as const)
    await storage.commit({ put: [this.#audit(record, 'hook.deleted', actor.id)], drop })
    await storage.sync()
  }

  /** The source that has this address, with its secret. */
  async at(address: string): Promise<{ readonly hook: HookRecord; readonly secret: string } | undefined> {
    const { storage, vault } = this.#options
    const pointer = await storage.read('hook', addressId(address))
    const id = pointer?.value['hook']
    const stored = typeof id === 'string' ? await storage.read('hook', id) : undefined
    if (stored === undefined || typeof id !== 'string') return undefined
    const hook = asHook(stored.value)
    const secret = vault.open(hook.sealed, id)
    if (secret !== undefined) return { hook, secret }
    throw new ImpresarioError(
      'CONFLICT',
      `The secret of the source "${hook.name}" was sealed with another key. Give it a secret again.`,
    )
  }

  /** Refuses a definition that listens to a source which is not there. */
  async mustKnow({ triggers }: AutomationDefinition, owner: string): Promise<void> {
    for (const [at, trigger] of triggers.entries()) {
      if (trigger.kind !== 'webhook') continue
      if ((await this.#options.storage.read('hook', hookId(owner, trigger.source))) !== undefined) continue
      const message = `triggers[${at}].source: There is no source of webhooks "${trigger.source}". Create it first.`
      throw refused(`triggers[${at}].source`, message)
    }
  }

  async #mustHaveRoom({ id }: Actor): Promise<void> {
    const { current = 0 } = await this.#options.storage.counts('hook', { owner: id })
    if (current >= HOOKS_MAX) {
      throw new ImpresarioError('LIMIT_EXCEEDED', `There can be ${HOOKS_MAX} sources of webhooks of one owner.`)
    }
  }

  #audit({ name, owner, preset }: HookRecord, action: string, actor: string): Put {
    const { random, clock } = this.#options
    const entry = { id: random.id(), at: wallTime(clock), actor, action, subject: `hook/${name}`, owner }
    return putAudit({ ...entry, details: { preset } })
  }
}

function hookId(owner: string, name: string): string {
  return `${escaped(owner)}/${name}`
}

/** No owner and name have such an id together: a slash comes after the owner. */
function addressId(address: string): string {
  return `address:${address.slice(0, 200)}`
}

function putHook(record: HookRecord, version: number | undefined): readonly Put[] {
  const { owner, name, address } = record
  const id = hookId(owner, name)
  const value = jsonObjectCopy(record, 'The source')
  const facets = { owner, name, status: 'current' }
  const whole: Put = { kind: 'hook', id, value, version: (version ?? 0) + 1, facets }
  if (version !== undefined) return [whole]
  return [whole, { kind: 'hook', id: addressId(address), value: { hook: id }, version: 1 }]
}

/** Boundary: only `putHook` has written it. */
function asHook(value: JsonObject): HookRecord {
  return storedCopy(value) as unknown as HookRecord
}

/** Libraries of Standard Webhooks decode a secret; the others take it as it is written. */
function newSecret(vault: Vault, preset: HookSpec['preset']): string {
  const secret = vault.secret()
  return preset === 'standard' ? `whsec_${secret.replaceAll('-', '+').replaceAll('_', '/')}` : secret
}
