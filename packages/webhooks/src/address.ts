import { BlockList, isIP } from 'node:net'

/**
 * The kind of an address, for connections on behalf of others:
 *
 * - `public`: a host of the open Internet.
 * - `private`: this machine, or a network of one's own. Only who runs the server can say whether clients may reach it.
 * - `forbidden`: nothing that a webhook or a download is ever meant for, whatever the settings: link-local addresses (where
 *   clouds keep their metadata), multicast, reserved ranges, and every way to write an IPv4 address inside an IPv6 one.
 */
export type AddressClass = 'public' | 'private' | 'forbidden'

type Subnet = readonly [address: string, prefix: number]

// One list per family and class. In a common list Node compares an IPv4 address with IPv6 subnets as its mapped form, and
// one of `::/3` would hold them all.
const V4_PRIVATE = listOf('ipv4', [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  // Shared by carriers for their customers (CGNAT), and by overlay networks.
  ['100.64.0.0', 10],
])

const V4_FORBIDDEN = listOf('ipv4', [
  // "This network": on most systems 0.0.0.0 connects to the machine itself.
  ['0.0.0.0', 8],
  // Metadata of clouds is at 169.254.169.254, but also elsewhere, and once at a public address.
  ['169.254.0.0', 16],
  ['100.100.100.200', 32],
  ['168.63.129.16', 32],
  ['192.0.0.0', 24],
  // Documentation and benchmarks.
  ['192.0.2.0', 24],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['198.18.0.0', 15],
  // Relays of 6to4.
  ['192.88.99.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
])

const V6_PRIVATE = listOf('ipv6', [
  ['::1', 128],
  ['fc00::', 7],
])

/** Metadata inside the range of private networks. */
const V6_METADATA = listOf('ipv6', [['fd00:ec2::254', 128]])

const V6_FORBIDDEN = listOf('ipv6', [
  // All that is not global unicast (2000::/3): unspecified, v4-mapped and v4-compatible, NAT64, link-local, multicast, and
  // what has not been given out yet.
  ['::', 3],
  ['4000::', 2],
  ['8000::', 1],
  // Protocol assignments: Teredo, benchmarks, overlay ids.
  ['2001::', 23],
  // Documentation.
  ['2001:db8::', 32],
  ['3fff::', 20],
  // 6to4 holds an IPv4 address.
  ['2002::', 16],
])

function listOf(family: 'ipv4' | 'ipv6', subnets: readonly Subnet[]): BlockList {
  const list = new BlockList()
  for (const [address, prefix] of subnets) list.addSubnet(address, prefix, family)
  return list
}

/** The class of an address as a resolver writes it. What is no plain address is forbidden; one with a zone (`%eth0`), too. */
export function classOfAddress(address: string): AddressClass {
  if (address.includes('%')) return 'forbidden'
  switch (isIP(address)) {
    case 4:
      if (V4_FORBIDDEN.check(address, 'ipv4')) return 'forbidden'
      return V4_PRIVATE.check(address, 'ipv4') ? 'private' : 'public'
    case 6:
      if (V6_METADATA.check(address, 'ipv6')) return 'forbidden'
      if (V6_PRIVATE.check(address, 'ipv6')) return 'private'
      return V6_FORBIDDEN.check(address, 'ipv6') ? 'forbidden' : 'public'
    default:
      return 'forbidden'
  }
}

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/** Whether an address is of this machine and of no network. */
export function isLoopback(address: string): boolean {
  const family = isIP(address)
  return family !== 0 && LOOPBACK.check(address, family === 4 ? 'ipv4' : 'ipv6')
}
