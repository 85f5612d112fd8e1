import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { parsedAddress } from './address.ts'

test('[G-03] an address carries settings of its own beside those of the driver', () => {
  const direct = encodeURIComponent('postgres://u:p@db:5432/x')
  const text = `postgres://u:p@pooler:6432/x?sslmode=verify-full&schema=shop&pool_max=5&strict=true&listen=${direct}`
  expect(parsedAddress(text)).toEqual({
    url: 'postgres://u:p@pooler:6432/x?sslmode=verify-full',
    namespace: 'shop',
    poolMax: 5,
    strict: true,
    listen: 'postgres://u:p@db:5432/x',
  })
  expect(parsedAddress('postgresql://h/x?listen=off')).toEqual({ url: 'postgresql://h/x', listen: false })
})

test.each([
  ['postgres://h/x?pool_max=0', 'pool_max'],
  ['postgres://h/x?pool_max=many', 'pool_max'],
  ['postgres://h/x?strict=yes', 'strict'],
  ['postgres://h/x?listen=on', 'listen'],
])('[G-03] the address %s is refused and says what is wrong', (text, message) => {
  const parse = (): unknown => parsedAddress(text)
  expect(parse).toThrow(expect.objectContaining({ code: 'INVALID_CONFIGURATION' }))
  expect(parse).toThrow(message)
})

test('[G-03] an address that cannot be read is refused without being repeated', () => {
  const parse = (): unknown => parsedAddress('postgres://user:secret@host:port/x')
  expect(parse).toThrow('no address')
  expect(parse).not.toThrow('secret')
  expect(inspect(caught(parse))).not.toContain('secret')
})

/** With everything that would be printed of it, including its causes. */
function caught(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error
  }
}
