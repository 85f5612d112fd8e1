import { createServer, Socket } from 'node:net'
import type { LogFields } from '@impresario/core'
import { describe, expect, test } from 'vitest'
import { boundConnections, proxyTest } from './connection-bounds.ts'
import { SILENT } from '../runtime/log.ts'

/** A connection from elsewhere; tests have only this machine, which is never counted. */
class FarSocket extends Socket {
  readonly written: string[] = []

  constructor(address: string) {
    super()
    Object.defineProperty(this, 'remoteAddress', { value: address })
  }

  override write(text: string): boolean {
    this.written.push(text)
    return true
  }

  /** No network is behind it that would be asked first. */
  override destroySoon(): void {
    this.destroy()
  }
}

function stage(proxies: string | false = false) {
  const told: LogFields[] = []
  const warn = (_message: string, fields: LogFields = {}): void => {
    told.push(fields)
  }
  let now = 0
  const server = createServer()
  const log = { ...SILENT, warn }
  boundConnections(server, { perAddressMax: 2, proxies, isPlain: true, log, now: () => now })
  const come = (address: string): FarSocket => {
    const socket = new FarSocket(address)
    server.emit('connection', socket)
    return socket
  }
  return {
    come,
    told,
    wait: (ms: number) => {
      now += ms
    },
  }
}

describe('[H-04] [C-10] connections from one address are bounded', () => {
  test('one too many is told why and closed; others come in, and so does the next when one has gone', async () => {
    const { come } = stage()
    const [first, second, third] = [come('203.0.113.7'), come('203.0.113.7'), come('203.0.113.7')]
    expect([first.destroyed, second.destroyed, third.destroyed]).toEqual([false, false, true])
    expect(third.written.join('')).toMatch(/^HTTP\/1\.1 429 [\s\S]*"code":"TOO_MANY_REQUESTS"/)
    expect(come('203.0.113.8').destroyed).toBe(false)
    const gone = new Promise((resolve) => first.once('close', resolve))
    first.destroy()
    await gone
    expect(come('203.0.113.7').destroyed).toBe(false)
    expect(come('203.0.113.7').destroyed).toBe(true)
  })

  test('a network of IPv6 is one address', () => {
    const { come } = stage()
    come('2001:db8:1:2::1')
    come('2001:db8:1:2::2')
    expect(come('2001:db8:1:2:ffff::3').destroyed).toBe(true)
    expect(come('2001:db8:1:3::1').destroyed).toBe(false)
  })

  test('the own machine and trusted proxies are not counted', () => {
    const { come } = stage('loopback, 10.0.0.0/8')
    for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '10.1.2.3', '::ffff:10.1.2.3']) {
      for (let time = 0; time < 4; time += 1) expect(come(address).destroyed).toBe(false)
    }
    expect(['192.168.0.1', '192.168.0.1', '192.168.0.1'].map((address) => come(address).destroyed)).toEqual([
      false,
      false,
      true,
    ])
  })

  test('the log tells it once a minute, and how many there were', () => {
    const { come, told, wait } = stage()
    for (let time = 0; time < 10; time += 1) come('203.0.113.7')
    expect(told).toEqual([{ address: '203.0.113.7', max: 2, refused: 1 }])
    wait(60_001)
    come('203.0.113.7')
    expect(told).toHaveLength(2)
    expect(told[1]).toMatchObject({ refused: 8 })
  })
})

test('[H-04] the names of networks are those of TRUST_PROXY', () => {
  const isProxy = proxyTest('uniquelocal, 192.0.2.7, 2001:db8::/32')
  for (const address of ['10.0.0.1', '172.16.9.9', '192.168.1.1', 'fd00::1', '192.0.2.7', '2001:db8:5::1']) {
    expect([address, isProxy(address)]).toEqual([address, true])
  }
  for (const address of ['127.0.0.1', '192.0.2.8', '172.32.0.1', '2001:db9::1', 'fe80::1']) {
    expect([address, isProxy(address)]).toEqual([address, false])
  }
  expect(proxyTest(false)('127.0.0.1')).toBe(false)
})
