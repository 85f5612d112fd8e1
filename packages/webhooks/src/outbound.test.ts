import { describe, expect, test } from 'vitest'
import { isImpresarioError } from '@impresario/protocol'
import { classOfAddress } from './address.ts'
import { checkUrl, mustBeWebhookUrl, readPorts, resolveTarget, STRICT_POLICY, systemResolve } from './outbound.ts'
import type { OutboundPolicy } from './outbound.ts'

const PRIVATE: OutboundPolicy = { ...STRICT_POLICY, allowPrivate: true }

/** Whether a URL that holds this address, however it is written, may be sent to. */
async function verdict(host: string, policy: OutboundPolicy): Promise<'sent' | 'refused'> {
  const url = checkUrl(`https://${host}/hook`, policy)
  if ('problem' in url) return 'refused'
  const target = await resolveTarget(url, policy, () => Promise.reject(new Error('a literal needs no lookup')))
  return 'problem' in target ? 'refused' : 'sent'
}

/** Refused, unless private networks are allowed. */
const PRIVATE_FORMS = [
  '127.0.0.1',
  '127.0.0.2',
  '127.255.255.255',
  '127.1',
  '127.0.1',
  '2130706433',
  '017700000001',
  '0x7f000001',
  '0x7f.1',
  '0x7f.0x0.0x0.0x1',
  '0177.0.0.1',
  '0177.0.0.01',
  '127.0.0.1.',
  '１２７.０.０.１',
  '127。0。0。1',
  '①②⑦.0.0.1',
  '10.0.0.0',
  '10.255.255.255',
  '167772161',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.0.1',
  '192.168.255.255',
  '0xc0a80001',
  '100.64.0.1',
  '100.127.255.255',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[0000::0001]',
  '[fc00::1]',
  '[fd12:3456:789a::1]',
  '[fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]',
]

/** Refused whatever the settings. */
const FORBIDDEN_FORMS = [
  '0.0.0.0',
  '0',
  '0.1.2.3',
  '169.254.169.254',
  '169.254.0.1',
  '2852039166',
  '0xa9fea9fe',
  '169.254.43518',
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
  '192.0.2.1',
  '192.88.99.1',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.7',
  '203.0.113.9',
  '224.0.0.1',
  '239.255.255.250',
  '240.0.0.1',
  '255.255.255.255',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::ffff:10.0.0.1]',
  '[::ffff:169.254.169.254]',
  '[::ffff:8.8.8.8]',
  '[::127.0.0.1]',
  '[::ffff:0:127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[64:ff9b::169.254.169.254]',
  '[64:ff9b:1::1]',
  '[2002:7f00:1::]',
  '[2002:a9fe:a9fe::1]',
  '[2001::1]',
  '[2001:0:7f00:1::]',
  '[2001:db8::1]',
  '[3fff::1]',
  '[100::1]',
  '[5f00::1]',
  '[fe80::1]',
  '[febf::1]',
  '[fec0::1]',
  '[ff02::1]',
  '[ff0e::1]',
  '[fd00:ec2::254]',
  '[4000::1]',
]

/** The neighbours of what is refused, and other hosts of the Internet. */
const PUBLIC_FORMS = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
  '134744072',
  '169.253.255.255',
  '169.255.0.1',
  '172.15.255.255',
  '172.32.0.1',
  '192.167.255.255',
  '192.169.0.1',
  '198.17.255.255',
  '198.20.0.1',
  '223.255.255.255',
  '[2606:4700:4700::1111]',
  '[2a00:1450:4001:81b::200e]',
  '[2001:4860:4860::8888]',
  '[2001:200::1]',
  '[2003::1]',
  '[3ffe::1]',
]

describe('[H-07] addresses in a URL', () => {
  test('there are enough forms in the table', () => {
    expect(new Set([...PRIVATE_FORMS, ...FORBIDDEN_FORMS]).size).toBeGreaterThanOrEqual(60)
  })

  test.each(PRIVATE_FORMS)('[H-07] %s is refused, unless private networks are allowed', async (host) => {
    expect(await verdict(host, STRICT_POLICY)).toBe('refused')
    expect(await verdict(host, PRIVATE)).toBe('sent')
  })

  test.each(FORBIDDEN_FORMS)('[H-07] %s is always refused', async (host) => {
    expect(await verdict(host, STRICT_POLICY)).toBe('refused')
    expect(await verdict(host, PRIVATE)).toBe('refused')
  })

  test.each(PUBLIC_FORMS)('[H-07] %s is a host of the Internet', async (host) => {
    expect(await verdict(host, STRICT_POLICY)).toBe('sent')
  })
})

test.each(['fe80::1%eth0', '8.8.8.8%1', 'example.com', '', '127.0.0', '[::1]', '08.8.8.8'])(
  '[H-07] what a resolver gives and is no plain address (%s) is forbidden',
  (address) => {
    expect(classOfAddress(address)).toBe('forbidden')
  },
)

test.each([
  ['not a url', 'is not an absolute URL'],
  ['/hook', 'is not an absolute URL'],
  ['', 'is not an absolute URL'],
  ['https://', 'is not an absolute URL'],
  ['https://1.2.3.4.5/', 'is not an absolute URL'],
  ['ftp://example.com/', 'must begin with https://'],
  ['file:///etc/passwd', 'must begin with https://'],
  ['data:text/plain,x', 'must begin with https://'],
  ['gopher://example.com/', 'must begin with https://'],
  ['mailto:a@example.com', 'must begin with https://'],
  ['http://example.com/', 'plain http is not allowed here (WEBHOOK_ALLOW_HTTP)'],
  ['https://user@example.com/', 'user name or a password'],
  ['https://user:pass@example.com/', 'user name or a password'],
  ['https://example.com@127.0.0.1/', 'user name or a password'],
  ['https://example.com:8443/', 'port 8443'],
  ['https://example.com:22/', 'port 22'],
  ['https://example.com:80/', 'port 80'],
  ['https://localhost/', 'private network'],
  ['https://LOCALHOST./', 'private network'],
  ['https://a.localhost/', 'private network'],
  ['https://metadata.google.internal/', 'private network'],
  ['https://printer.local/', 'private network'],
  ['https://127.0.0.1#@example.com/', 'private network'],
  [String.raw`https://127.0.0.1\@example.com/`, 'private network'],
  [`https://example.com/${'x'.repeat(2_048)}`, 'longer than 2048'],
])('[H-07] %s is refused when it is given', (url, reason) => {
  const checked = checkUrl(url, STRICT_POLICY)
  expect('problem' in checked ? checked.problem : 'allowed').toContain(reason)
})

test.each([
  'https://example.com',
  'https://example.com:443/a?b=c',
  'https://xn--bcher-kva.example/',
  'HTTPS://EXAMPLE.COM/',
])('[H-07] %s is allowed', (url) => {
  expect('problem' in checkUrl(url, STRICT_POLICY)).toBe(false)
})

test('[H-07] plain http, private networks and other ports are allowed by settings of their own', () => {
  const isAllowed = (url: string, policy: Partial<OutboundPolicy>): boolean =>
    !('problem' in checkUrl(url, { ...STRICT_POLICY, ...policy }))
  expect(isAllowed('http://example.com/', { allowHttp: true })).toBe(true)
  expect(isAllowed('http://example.com:80/', { allowHttp: true })).toBe(true)
  expect(isAllowed('http://example.com:443/', { allowHttp: true })).toBe(false)
  expect(isAllowed('http://127.0.0.1/', { allowHttp: true })).toBe(false)
  expect(isAllowed('https://localhost/', { allowPrivate: true })).toBe(true)
  expect(isAllowed('http://localhost/', { allowPrivate: true })).toBe(false)
  const allowedPorts = readPorts(' 8443, 9000-9002 ,') ?? []
  const ports = [8_442, 8_443, 8_444, 8_999, 9_000, 9_002, 9_003]
  expect(ports.filter((port) => isAllowed(`https://example.com:${port}/`, { allowedPorts }))).toEqual([
    8_443, 9_000, 9_002,
  ])
})

test('[H-07] lists of ports that cannot be read are known', () => {
  for (const text of ['http', '0', '65536', '9-3', '1-2-3', '80;81', '-1', '1.5']) {
    expect(readPorts(text)).toBeUndefined()
  }
  expect(readPorts('')).toEqual([])
  expect(readPorts('1-65535')).toEqual([{ from: 1, to: 65_535 }])
})

test('[H-07] a route that takes an address refuses a wrong one with 400 and says what is wrong', () => {
  let thrown: unknown
  try {
    mustBeWebhookUrl('https://10.0.0.1/hook', STRICT_POLICY)
  } catch (error) {
    thrown = error
  }
  expect(isImpresarioError(thrown, 'INVALID_REQUEST') && [thrown.status, thrown.message]).toEqual([
    400,
    '"webhook_url" points to this machine or a private network, which is not allowed here (WEBHOOK_ALLOW_PRIVATE).',
  ])
  expect(() => mustBeWebhookUrl('https://example.com/hook', STRICT_POLICY)).not.toThrow()
})

test.each([
  ['one address is private', ['93.184.215.14', '10.0.0.1']],
  ['the last address is forbidden', ['93.184.215.14', '2606:4700::1111', '::ffff:127.0.0.1']],
  ['the name resolves to this machine', ['127.0.0.1']],
  ['it has no address', []],
])('[H-07] a name is refused as a whole when %s', async (_case, addresses) => {
  const url = new URL('https://hooks.example/')
  expect(await resolveTarget(url, STRICT_POLICY, async () => addresses)).toHaveProperty('problem')
})

describe('[H-07] where loopback is allowed', () => {
  const policy: OutboundPolicy = { ...STRICT_POLICY, allowLoopback: true }
  const reached = async (address: string, resolved: readonly string[] = []): Promise<boolean> => {
    const url = checkUrl(address, policy)
    return !('problem' in url) && !('problem' in (await resolveTarget(url, policy, async () => resolved)))
  }
  test.each([
    ['http://127.0.0.1:3000/a', []],
    ['http://[::1]:3000/', []],
    ['http://localhost:3000/', ['127.0.0.1', '::1']],
    ['https://localhost/', ['127.0.0.1']],
    ['https://hooks.example/', ['93.184.215.14']],
  ])('%s is reached', async (address, resolved) => expect(await reached(address, resolved)).toBe(true))
  test.each([
    ['http://localhost:3000/', ['10.0.0.1']],
    ['http://localhost:3000/', []],
    ['http://user:word@localhost/', ['127.0.0.1']],
    ['ftp://localhost/', ['127.0.0.1']],
    ['http://10.0.0.1/', []],
    ['http://169.254.169.254/', []],
    ['http://hooks.example/', ['93.184.215.14']],
    ['https://hooks.example/', ['127.0.0.1']],
    ['https://evil.localhost/', ['127.0.0.1']],
  ])('%s at %j is not', async (address, resolved) => expect(await reached(address, resolved)).toBe(false))
})

test('[H-07] a name is looked up once, and all its addresses are kept', async () => {
  let lookups = 0
  const target = await resolveTarget(new URL('https://hooks.example/a'), STRICT_POLICY, async (host) => {
    lookups += 1
    expect(host).toBe('hooks.example')
    return ['93.184.215.14', '2606:4700::1111']
  })
  expect(target).toMatchObject({ addresses: ['93.184.215.14', '2606:4700::1111'], isPublic: true })
  expect(lookups).toBe(1)
})

test('[H-07] the system resolves the name of this machine to addresses that are refused', async () => {
  const addresses = await systemResolve('localhost')
  expect(addresses.length).toBeGreaterThan(0)
  expect(addresses.map(classOfAddress)).not.toContain('public')
})
