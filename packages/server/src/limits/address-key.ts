import { isIP } from 'node:net'
import { isLoopback } from '../auth/credentials.ts'

/** A request, as far as it is looked at here. A connection that has hung up has no address any more, whatever types say. */
interface Addressed {
  readonly ip: string | undefined
  /** All addresses on the way, where a proxy is trusted. */
  readonly ips?: readonly string[] | undefined
  readonly socket: { readonly remoteAddress?: string | undefined }
}

/** All callers whose address cannot be told share one key: who could make up addresses would have a limit for each. */
const UNREADABLE = 'unreadable'

/**
 * The part of an address that tells callers apart: a client with an IPv6 address has 2⁶⁴ of them. `undefined` for the own
 * machine.
 *
 * Behind a trusted proxy the address is what X-Forwarded-For says, which may be any text. Only a connection that comes
 * from this machine itself counts as the own machine: a header that says so is not believed.
 */
export function addressKey({ ip: said, ips = [], socket }: Addressed): string | undefined {
  const direct = socket.remoteAddress
  if (said === direct && ips.length <= 1) return direct === undefined ? UNREADABLE : networkKey(direct)
  return networkKey(said ?? '') ?? 'loopback behind a proxy'
}

/** The same for the address of a connection. */
export function networkKey(text: string): string | undefined {
  const address = plainAddress(text)
  if (address === undefined) return UNREADABLE
  if (isLoopback(address)) return undefined
  return address.includes(':') ? networkOf(address) : address
}

/** Without the port that some proxies write behind it, the brackets of IPv6, its zone, and the wrapping of IPv4 in it. */
function plainAddress(text: string): string | undefined {
  const bare =
    /^\[(?<six>[^\]]+)\](?::\d{1,5})?$/.exec(text)?.groups?.['six'] ??
    /^(?<four>\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(text)?.groups?.['four'] ??
    text
  const address = (bare.split('%', 1)[0] ?? '').replace(/^::ffff:(?=\d+\.)/i, '')
  return isIP(address) === 0 ? undefined : address
}

function networkOf(address: string): string {
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? []
  const groups = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - last.length)
  return [...groups, ...Array.from({ length: zeros }, () => '0'), ...last]
    .slice(0, 4)
    .map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''))
    .join(':')
}
