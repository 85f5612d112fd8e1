import type { JsonObject } from '@impresario/protocol'
import { hashToken } from './auth.ts'
import type { ClientCredential, TokenHash, WorkerCredentials } from './auth.ts'
import { invalid, parseFile } from './config.ts'
import type { Settings } from './config.ts'

export interface Credentials {
  readonly clients: readonly ClientCredential[]
  readonly workers: WorkerCredentials
}

/** Secrets that stand in documents and examples: everybody knows them. */
const WELL_KNOWN: ReadonlySet<string> = new Set([
  'secure-orchestrator-token',
  'secure-worker-token',
  'your-secret-worker-token',
  'changeme',
  'change-me',
  'secret',
  'token',
  'password',
])

/** Reads who may call, and refuses a server that anybody on the network could use. */
export function loadCredentials(settings: Settings): Credentials {
  const tokens = new TokenBook(!isLoopback(settings.apiHost))
  const clients = [...fileClients(settings.clientsConfigPath, tokens)]
  if (settings.clientToken !== '') {
    clients.push({ tokenHash: tokens.add('CLIENT_TOKEN', settings.clientToken), client: { id: 'default' } })
  }
  const ids = clients.map(({ client }) => client.id)
  if (new Set(ids).size < ids.length) {
    throw invalid(`${settings.clientsConfigPath}: [default] and CLIENT_TOKEN name the same client. Keep one of them.`)
  }
  if (clients.length === 0 && !isLoopback(settings.apiHost)) {
    throw invalid(
      `API_HOST is ${settings.apiHost} and no client has a token, so anybody on the network could start jobs. ` +
        'Set CLIENT_TOKEN or CLIENTS_CONFIG_PATH, or set API_HOST to 127.0.0.1.',
    )
  }
  const individual = fileWorkers(settings.workersConfigPath, tokens)
  const global = settings.workerToken === '' ? undefined : tokens.check('WORKER_TOKEN', settings.workerToken)
  return { clients, workers: { individual, global } }
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}

/** Hashes tokens on their way in; a token that two clients share would make one of them the other. */
class TokenBook {
  readonly #isExposed: boolean
  readonly #owners = new Map<string, string>()

  constructor(isExposed: boolean) {
    this.#isExposed = isExposed
  }

  add(place: string, token: string): TokenHash {
    const hash = this.check(place, token)
    const key = hash.toString('latin1')
    const other = this.#owners.get(key)
    if (other !== undefined) throw invalid(`${place} is the same as ${other}. Every token must be a different one.`)
    this.#owners.set(key, place)
    return hash
  }

  check(place: string, token: string): TokenHash {
    if (this.#isExposed && WELL_KNOWN.has(token.toLowerCase())) {
      throw invalid(`${place} is a well-known default that anybody can guess. Choose a long random one.`)
    }
    return hashToken(token)
  }
}

type Table = Readonly<Record<string, unknown>>

function* tables(path: string): Generator<readonly [string, Table]> {
  if (path === '') return
  for (const [name, table] of Object.entries(parseFile(path))) {
    if (typeof table !== 'object' || table === null || Array.isArray(table)) {
      throw invalid(`${path}: ${name} stands outside of a table. Begin the file with a table such as [my_name].`)
    }
    yield [name, table as Table]
  }
}

function* fileClients(path: string, tokens: TokenBook): Generator<ClientCredential> {
  for (const [id, table] of tables(path)) {
    const { token, plan, monthly_attempts: attempts, params, ...others } = table
    const at = `${path}: [${id}]`
    const tokenHash = tokens.add(`${at}.token`, tokenIn(at, token))
    if (plan !== undefined && typeof plan !== 'string') throw invalid(`${at}.plan must be a text.`)
    if (attempts !== undefined && !(typeof attempts === 'number' && Number.isInteger(attempts) && attempts >= 0)) {
      throw invalid(`${at}.monthly_attempts must be a whole number of at least 0.`)
    }
    if (params !== undefined && (typeof params !== 'object' || params === null || Array.isArray(params))) {
      throw invalid(`${at}.params must be a table.`)
    }
    const custom = jsonOf({ ...others, ...params })
    const client = {
      id,
      ...(plan === undefined ? {} : { plan }),
      ...(Object.keys(custom).length === 0 ? {} : { params: custom }),
    }
    yield { tokenHash, client, ...(attempts === undefined ? {} : { monthlyAttempts: attempts }) }
  }
}

function fileWorkers(path: string, tokens: TokenBook): ReadonlyMap<string, TokenHash> {
  const individual = new Map<string, TokenHash>()
  for (const [id, table] of tables(path)) {
    const at = `${path}: [${id}]`
    const { token, description, ...others } = table
    if (description !== undefined && typeof description !== 'string') throw invalid(`${at}.description must be a text.`)
    const [unknown] = Object.keys(others)
    if (unknown !== undefined) throw invalid(`${at}.${unknown} is not known. A worker has token and description.`)
    individual.set(id, tokens.add(`${at}.token`, tokenIn(at, token)))
  }
  return individual
}

function tokenIn(at: string, token: unknown): string {
  if (typeof token === 'string' && token.trim() !== '') return token
  throw invalid(`${at}.token ${token === undefined ? 'is missing' : 'must be a text that is not empty'}.`)
}

/** Dates and large numbers of TOML become what JSON has for them. */
function jsonOf(table: Table): JsonObject {
  return JSON.parse(
    JSON.stringify(table, (_key, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)),
  ) as JsonObject
}
