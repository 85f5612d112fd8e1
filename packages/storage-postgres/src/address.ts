import { ImpresarioError } from '@impresario/protocol'

/** What an address contains besides the location of the server. */
export interface Address {
  /** For the driver, without our own parameters. */
  readonly url: string
  readonly namespace?: string
  readonly poolMax?: number
  readonly listen?: string | false
  readonly strict?: boolean
}

const POOL_MAX = 1_000

/**
 * Extracts our parameters from an address: `schema`, `pool_max`, `strict` (true, false), and `listen` (off, or another
 * address that does not go through a pooler).
 */
export function parsedAddress(text: string): Address {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    // The address may contain a password, so it is not repeated here. The original error would repeat it.
    const message = 'STORAGE_URL is no address. Write it as postgres://user:password@host:5432/database.'
    throw new ImpresarioError('INVALID_CONFIGURATION', message)
  }
  const take = (name: string): string | undefined => {
    const value = url.searchParams.get(name) ?? undefined
    url.searchParams.delete(name)
    return value
  }
  const namespace = take('schema')
  const poolMax = take('pool_max')
  const strict = take('strict')
  const listen = take('listen')
  return {
    ...(namespace === undefined ? {} : { namespace }),
    ...(poolMax === undefined ? {} : { poolMax: poolMaxOf(poolMax) }),
    ...(strict === undefined ? {} : { strict: strictOf(strict) }),
    ...(listen === undefined ? {} : { listen: listenOf(listen) }),
    url: url.href,
  }
}

function poolMaxOf(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= POOL_MAX) return value
  throw invalid('pool_max', `a whole number from 1 to ${POOL_MAX}`)
}

function strictOf(text: string): boolean {
  if (text === 'true' || text === 'false') return text === 'true'
  throw invalid('strict', 'true or false')
}

function listenOf(text: string): string | false {
  if (text === 'off') return false
  if (/^postgres(?:ql)?:\/\//.test(text)) return text
  throw invalid('listen', 'off, or the address of the server itself (percent-encoded)')
}

function invalid(name: string, allowed: string): ImpresarioError {
  return new ImpresarioError('INVALID_CONFIGURATION', `STORAGE_URL: ${name} must be ${allowed}.`)
}
