import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Capabilities } from '../auth/capabilities.ts'
import { loadSecretKey } from './secret-key.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-key-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const hex = (key: Buffer): string => key.toString('hex')

test('[H-08] a key is made once beside the storage, and nobody else may read it', async () => {
  const data = join(directory, 'data')
  const first = loadSecretKey('', data)
  const file = join(data, 'secret.key')
  expect((await stat(data)).mode & 0o777).toBe(0o700)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await readFile(file, 'utf8')).toMatch(/^[\da-f]{64}\n$/)
  await chmod(file, 0o644)
  expect(hex(loadSecretKey('', data).derive('x'))).toBe(hex(first.derive('x')))
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(first.isEphemeral).toBe(false)
})

test('[H-08] [G-01] the key of the embedded storage can be given to instances on another one', async () => {
  const kept = loadSecretKey('', directory)
  const text = await readFile(join(directory, 'secret.key'), 'utf8')
  expect(hex(loadSecretKey(text.trim(), undefined).derive('x'))).toBe(hex(kept.derive('x')))
})

test('[H-08] a file that holds no key is refused, and so is a short setting', async () => {
  await writeFile(join(directory, 'secret.key'), 'half a key')
  expect(() => loadSecretKey('', directory)).toThrow(/secret\.key does not hold a key/)
  expect(() => loadSecretKey('short', undefined)).toThrow(/SECRET_KEY is too short/)
  expect(() => loadSecretKey('', join(directory, 'secret.key'))).toThrow(/EEXIST|ENOTDIR/)
})

test('[H-08] each purpose has a key of its own; without a place to keep it, it lasts for one run', () => {
  const key = loadSecretKey('a long secret of the tests', directory)
  expect(hex(key.derive('one'))).not.toBe(hex(key.derive('two')))
  expect(hex(key.derive('one'))).toBe(hex(loadSecretKey('a long secret of the tests', undefined).derive('one')))
  const once = loadSecretKey('', undefined)
  expect(once.isEphemeral).toBe(true)
  expect(hex(once.derive('one'))).not.toBe(hex(loadSecretKey('', undefined).derive('one')))
})

test('[H-01] a capability is good for its job, as it was given, until it expires', () => {
  let now = 1_000_000
  const clock = { now: () => now, sleep: () => Promise.resolve() }
  const capabilities = new Capabilities(loadSecretKey('', undefined), clock)
  const permission = { jobId: 'job', visit: 3, decision: 'späte Änderung', expiresAt: 2_000_000 }
  const text = capabilities.issue(permission)
  expect(capabilities.check(text, 'job')).toEqual(permission)
  expect(() => capabilities.check(text, 'other')).toThrow(/not valid/)
  for (let at = 0; at < text.length; at += 1) {
    const forged = `${text.slice(0, at)}${text.charAt(at) === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`
    expect(() => capabilities.check(forged, 'job')).toThrow(/not valid/)
  }
  expect(() => new Capabilities(loadSecretKey('', undefined), clock).check(text, 'job')).toThrow(/not valid/)
  now = 2_000_000
  expect(() => capabilities.check(text, 'job')).toThrow(/too old/)
})
