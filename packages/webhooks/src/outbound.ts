import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { LookupFunction } from 'node:net'
import { ImpresarioError } from '@impresario/protocol'
import { classOfAddress, isLoopback } from './address.ts'

/*
 * Guards requests whose address was chosen by others: webhooks, and whatever fetches on behalf of users.
 *
 * 1. `checkUrl`: what can be checked without a lookup. Cheap, so that a wrong address is refused when it is given.
 * 2. `resolveTarget`: the name is resolved once, and every address that comes back is checked.
 * 3. The connection goes to one of these very addresses. The name is not resolved again: a name that points elsewhere a
 *    moment later (DNS rebinding) changes nothing.
 */

export interface OutboundPolicy {
  /** Also `http:`. */
  readonly allowHttp: boolean
  /** Also this machine and private networks. */
  readonly allowPrivate: boolean
  /** Beside the port that belongs to the scheme: 443, and 80 where `http:` is allowed. */
  readonly allowedPorts: readonly PortRange[]
  /** Also loopback addresses of this machine, by http: and on any port. For development. */
  readonly allowLoopback?: boolean
}

export interface PortRange {
  readonly from: number
  readonly to: number
}

export const STRICT_POLICY: OutboundPolicy = { allowHttp: false, allowPrivate: false, allowedPorts: [] }

/** Longer ones are refused by many receivers, and each message keeps its own. */
const URL_CHARS_MAX = 2_048

const LOCAL_NAME = /^(?:localhost|(?:.+\.)?(?:localhost|internal|local))\.?$/

/** Addresses of a name. The real one asks the operating system, once. */
export type Resolve = (host: string) => Promise<readonly string[]>

export interface Target {
  readonly url: URL
  /** Each has been checked. */
  readonly addresses: readonly string[]
  readonly isPublic: boolean
}

export interface Refusal {
  /** A sentence for the user who gave the address. */
  readonly problem: string
}

/** The address, if nothing in it speaks against it. */
export function checkUrl(text: string, policy: OutboundPolicy): URL | Refusal {
  if (text.length > URL_CHARS_MAX) return { problem: `is longer than ${URL_CHARS_MAX} characters` }
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return { problem: 'is not an absolute URL, such as https://example.com/hook' }
  }
  const isOpen = policy.allowLoopback === true && isLoopbackHost(hostOf(url))
  const problem = isOpen ? loopbackProblem(url) : (schemeProblem(url, policy) ?? hostProblem(url, policy))
  return problem === undefined ? url : { problem }
}

/** Names and addresses that mean this machine and nothing else. */
function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || isLoopback(host)
}

function loopbackProblem(url: URL): string | undefined {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with http:// or https://'
  return url.username === '' && url.password === '' ? undefined : CREDENTIALS
}

const CREDENTIALS = 'must not hold a user name or a password'

const NOT_SECURE = 'must begin with https://; plain http is not allowed here (WEBHOOK_ALLOW_HTTP)'

function schemeProblem(url: URL, { allowHttp, allowedPorts }: OutboundPolicy): string | undefined {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https://'
  if (url.protocol === 'http:' && !allowHttp) return NOT_SECURE
  if (url.username !== '' || url.password !== '') return CREDENTIALS
  const port = Number(url.port)
  if (url.port === '' || allowedPorts.some(({ from, to }) => from <= port && port <= to)) return undefined
  return `uses port ${port}, which is not allowed here (WEBHOOK_ALLOWED_PORTS)`
}

const PRIVATE = 'points to this machine or a private network, which is not allowed here (WEBHOOK_ALLOW_PRIVATE)'

function hostProblem(url: URL, { allowPrivate }: OutboundPolicy): string | undefined {
  const host = hostOf(url)
  if (isIP(host) !== 0) return addressProblem([host], allowPrivate)
  if (!allowPrivate && LOCAL_NAME.test(host)) return PRIVATE
  return undefined
}

/** The name or the address, without the brackets around those of IPv6. `URL` has folded all other ways to write one. */
function hostOf(url: URL): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
}

function addressProblem(addresses: readonly string[], allowPrivate: boolean): string | undefined {
  const classes = new Set(addresses.map(classOfAddress))
  if (classes.has('forbidden')) return 'points to an address that nothing may be sent to'
  if (!allowPrivate && classes.has('private')) return PRIVATE
  return undefined
}

/**
 * One answer for an unknown name and for one that leads inside: a user who may name receivers must not learn which
 * names exist in the network of this server. A literal address tells nothing that its sender did not know.
 */
const UNREACHABLE: Refusal = { problem: 'has a name that leads to no address that messages may be sent to' }

/** Where to connect for an address that `checkUrl` has let pass. One lookup; one bad address among many refuses them all. */
export async function resolveTarget(url: URL, policy: OutboundPolicy, resolve: Resolve): Promise<Target | Refusal> {
  const host = hostOf(url)
  const addresses = isIP(host) === 0 ? await addressesOf(host, resolve) : [host]
  // Only a host that names this machine: any other name could point here a moment later.
  const isOpen = policy.allowLoopback === true && isLoopbackHost(host) && addresses.every(isLoopback)
  const isBad = !isOpen && addressProblem(addresses, policy.allowPrivate) !== undefined
  if (addresses.length === 0 || isBad) return UNREACHABLE
  return { url, addresses, isPublic: addresses.every((address) => classOfAddress(address) === 'public') }
}

/** None when the name cannot be looked up, for whatever reason. */
async function addressesOf(host: string, resolve: Resolve): Promise<readonly string[]> {
  try {
    return await resolve(host)
  } catch {
    return []
  }
}

/** As the operating system resolves names, `/etc/hosts` included. */
export const systemResolve: Resolve = async (host) => {
  const found = await lookup(host, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

/** For a connection to a target: gives the addresses that were checked, and resolves nothing. */
export function pinnedLookup(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_host, { all, family }, callback) => {
    const wanted = family === 4 || family === 6 ? found.filter((one) => one.family === family) : found
    const [first] = wanted
    if (first === undefined) callback(new Error('There is no address of that family.'), '', 4)
    else if (all === true) callback(null, wanted)
    else callback(null, first.address, first.family)
  }
}

/** For routes that take an address: refuses one that could never be sent to. Names are resolved only when it is sent. */
export function mustBeWebhookUrl(text: string, policy: OutboundPolicy): void {
  const checked = checkUrl(text, policy)
  if ('problem' in checked) throw new ImpresarioError('INVALID_REQUEST', `"webhook_url" ${checked.problem}.`)
}

/** Reads `8443, 9000-9100`. `undefined`: it cannot be read. */
export function readPorts(text: string): readonly PortRange[] | undefined {
  const ranges: PortRange[] = []
  for (const part of text.split(',').map((one) => one.trim())) {
    if (part === '') continue
    const match = /^(\d{1,5})(?:\s*-\s*(\d{1,5}))?$/.exec(part)
    if (match === null) return undefined
    const from = Number(match[1])
    const to = Number(match[2] ?? match[1])
    if (from < 1 || to > 65_535 || from > to) return undefined
    ranges.push({ from, to })
  }
  return ranges
}
