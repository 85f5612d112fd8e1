import { SCHEDULER_CLIENT } from '@impresario/core'
import { CLIENT_ROLES } from '../http/access.ts'
import type { ClientCredential } from './auth.ts'
import { invalid } from '../config/config.ts'
import type { Settings } from '../config/config.ts'
import { CLIENT_FILES_BYTES_CEILING, CLIENT_FILES_CEILING } from '../config/file-keys.ts'
import { LINK_HOLDER } from './capabilities.ts'
import { TableReader, refuseMisspelt, tablesIn, tomlJson } from '../config/table-reader.ts'
import type { Table } from '../config/table-reader.ts'
import { TOKEN_KEYS, TokenBook } from './token-book.ts'
import { WorkerCredentials } from './worker-credentials.ts'
import type { WorkerCredential } from './worker-credentials.ts'

export interface Credentials {
  readonly clients: readonly ClientCredential[]
  readonly workers: WorkerCredentials
}

type CredentialSettings = Pick<
  Settings,
  'apiHost' | 'clientsConfigPath' | 'workersConfigPath' | 'clientToken' | 'workerToken'
>

/** Reads who may call, and refuses a configuration that lets anyone on the network in. */
export function loadCredentials(settings: CredentialSettings): Credentials {
  const book = new TokenBook(!isLoopback(settings.apiHost))
  const clients = [...fileClients(settings.clientsConfigPath, book)]
  if (settings.clientToken !== '') {
    const tokens = [book.add('CLIENT_TOKEN', settings.clientToken)]
    // The only client that there is runs the place; beside others, the file says who does.
    const role = settings.clientsConfigPath === '' ? 'admin' : 'client'
    clients.push({ tokens, client: { id: 'default' }, role })
  }
  const ids = clients.map(({ client }) => client.id)
  if (new Set(ids).size < ids.length) {
    throw invalid(`${settings.clientsConfigPath}: [default] and CLIENT_TOKEN name the same client. Keep one of them.`)
  }
  if (clients.length === 0 && !isLoopback(settings.apiHost)) {
    throw invalid(
      `API_HOST is ${settings.apiHost} and no client has a token, so anyone on the network could start jobs. ` +
        'Set CLIENT_TOKEN or CLIENTS_CONFIG_PATH, or set API_HOST to 127.0.0.1.',
    )
  }
  const individual = [...fileWorkers(settings.workersConfigPath, book)]
  const global = settings.workerToken === '' ? undefined : book.add('WORKER_TOKEN', settings.workerToken)
  return { clients, workers: new WorkerCredentials(individual, global) }
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}

/** A file that was emptied by mistake must not remove all tokens, which would let anyone in. */
function credentialTables(path: string, setting: string): readonly (readonly [string, Table])[] {
  if (path === '') return []
  const tables = [...tablesIn(path, 'my_name')]
  if (tables.length > 0) return tables
  throw invalid(`${path} is empty. Write a table such as [my_name] with a token into it, or leave ${setting} unset.`)
}

const LIMIT_KEYS = ['monthly_attempts', 'files_max', 'files_bytes_max'] as const
const CLIENT_KEYS: ReadonlySet<string> = new Set([...TOKEN_KEYS, 'role', 'plan', ...LIMIT_KEYS, 'params'])
const WORKER_KEYS: ReadonlySet<string> = new Set([...TOKEN_KEYS, 'description', 'signed'])

/** Jobs and their histories name the actor: no client may pass for the schedules, a person with a link, or the server. */
const RESERVED_CLIENTS: ReadonlySet<string> = new Set([SCHEDULER_CLIENT, LINK_HOLDER, 'system', 'impresario'])

function* fileClients(path: string, book: TokenBook): Generator<ClientCredential> {
  for (const [id, table] of credentialTables(path, 'CLIENTS_CONFIG_PATH')) {
    const at = `${path}: [${id}]`
    if (RESERVED_CLIENTS.has(id.toLowerCase())) {
      throw invalid(`${at} is reserved by the server. Choose another name for this client.`)
    }
    const reader = new TableReader(at, table)
    const others = Object.fromEntries(Object.entries(table).filter(([key]) => !CLIENT_KEYS.has(key)))
    refuseMisspelt(at, Object.keys(others), CLIENT_KEYS, `or put it into [${id}.params] if it is meant for handlers`)
    const { hashes } = book.read(at, table)
    const plan = reader.text('plan', { mayBeEmpty: true })
    const custom = tomlJson({ ...others, ...reader.table('params') })
    const client = {
      id,
      ...(plan === undefined ? {} : { plan }),
      ...(Object.keys(custom).length === 0 ? {} : { params: custom }),
    }
    yield { tokens: hashes, client, role: reader.choice('role', CLIENT_ROLES) ?? 'client', ...limitsIn(reader) }
  }
}

function limitsIn(reader: TableReader): Pick<ClientCredential, 'monthlyAttempts' | 'filesMax' | 'filesBytesMax'> {
  const whole = (key: (typeof LIMIT_KEYS)[number], max: number): number | undefined =>
    reader.number(key, { min: 0, max, isWhole: true })
  const monthlyAttempts = whole('monthly_attempts', Number.MAX_SAFE_INTEGER)
  const filesMax = whole('files_max', CLIENT_FILES_CEILING)
  const filesBytesMax = whole('files_bytes_max', CLIENT_FILES_BYTES_CEILING)
  return {
    ...(monthlyAttempts === undefined ? {} : { monthlyAttempts }),
    ...(filesMax === undefined ? {} : { filesMax }),
    ...(filesBytesMax === undefined ? {} : { filesBytesMax }),
  }
}

/** Matching a pattern with many stars takes long, and three are enough for any name. */
const STARS_MAX = 3

function* fileWorkers(path: string, book: TokenBook): Generator<WorkerCredential> {
  for (const [name, table] of credentialTables(path, 'WORKERS_CONFIG_PATH')) {
    const at = `${path}: [${name}]`
    const reader = new TableReader(at, table)
    reader.refuseUnknown(WORKER_KEYS, 'A worker')
    reader.text('description', { mayBeEmpty: true })
    const signed = reader.flag('signed')
    if (name.split('*').length - 1 > STARS_MAX) throw invalid(`${at} must have at most ${STARS_MAX} "*" in its name.`)
    const { hashes, plain } = book.read(at, table)
    if (signed === true && plain.length < hashes.length) {
      throw invalid(
        `${at}.signed needs the token itself, because a signature cannot be checked with a hash. ` +
          'Use token instead of token_sha256; it is then kept in memory, and nowhere else.',
      )
    }
    yield { name, tokens: hashes, signing: signed === true ? plain : undefined }
  }
}
