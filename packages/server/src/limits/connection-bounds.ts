import { BlockList, isIPv6 } from 'node:net'
import type { Server, Socket } from 'node:net'
import type { Log } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { networkKey } from './address-key.ts'
import { refusalText } from '../http/parser-errors.ts'

export interface ConnectionBounds {
  readonly perAddressMax: number
  /** As the setting has them: many callers share the address of a proxy. */
  readonly proxies: string | false
  /** Whether the connection speaks HTTP from the first byte on, and not TLS. */
  readonly isPlain: boolean
  readonly log: Log
  readonly now?: () => number
}

/** Said so often at most, however many are refused. */
const TELL_EVERY_MS = 60_000

/** Bounds the connections from one address, before a byte of them is read. Proxies and the own machine are not counted. */
export function boundConnections(server: Server, bounds: ConnectionBounds): void {
  const { perAddressMax, log, isPlain, now = () => performance.now() } = bounds
  const isProxy = proxyTest(bounds.proxies)
  const open = new Map<string, number>()
  let refused = 0
  let toldAt = Number.NEGATIVE_INFINITY

  const tell = (address: string): void => {
    refused += 1
    if (now() - toldAt < TELL_EVERY_MS) return
    toldAt = now()
    log.warn('an address has too many connections; new ones are closed', { address, max: perAddressMax, refused })
    refused = 0
  }

  server.prependListener('connection', (socket: Socket) => {
    const address = socket.remoteAddress
    const key = address === undefined || isProxy(address) ? undefined : networkKey(address)
    if (key === undefined) return
    const count = (open.get(key) ?? 0) + 1
    if (count > perAddressMax) {
      tell(key)
      if (isPlain) socket.write(TOO_MANY)
      socket.destroySoon()
      return
    }
    open.set(key, count)
    socket.once('close', () => {
      const left = (open.get(key) ?? 1) - 1
      if (left === 0) open.delete(key)
      else open.set(key, left)
    })
  })
}

const TOO_MANY = refusalText(
  new ImpresarioError('TOO_MANY_REQUESTS', 'Too many connections from your address. Close some, or reuse them.'),
)

const GROUPS: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.1/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

/** The setting was checked before. */
export function proxyTest(proxies: string | false): (address: string) => boolean {
  if (proxies === false) return () => false
  const list = new BlockList()
  const named = proxies.split(',').map((one) => one.trim())
  for (const network of named.flatMap((name) => GROUPS[name] ?? [name])) {
    if (network === '') continue
    const [address = '', bits] = network.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    list.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family)
  }
  return (address) => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}
