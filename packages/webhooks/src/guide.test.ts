import { spawn, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { deriveSecret, LOCAL_POLICY } from './bench.fixture.ts'
import type { Sent } from './deliver.ts'
import { createHttpDeliver } from './http-deliver.ts'
import { webhookHeaders, webhookSecret } from './signature.ts'

/*
 * The receivers of the guide are copied by users, so they are run here as they stand there: in processes of their own,
 * with what we sign, with what somebody else signs, and with what is too old.
 */

const deliver = createHttpDeliver({ policy: LOCAL_POLICY })
const owner = { clientId: 'acme', address: 'guide' }
const [secret, old, foreign] = [1, 0, 7].map((n) => webhookSecret(deriveSecret, owner, n)) as [string, string, string]
const running: (() => void)[] = []

afterEach(() => {
  for (const stop of running.splice(0)) stop()
})

async function snippet(language: string): Promise<string> {
  const guide = await readFile(new URL('../../../docs/guide/webhooks.md', import.meta.url), 'utf8')
  const found = new RegExp(`\`\`\`${language}\\n(?<code>[\\s\\S]*?)\`\`\``).exec(guide)?.groups?.['code']
  if (found === undefined) throw new Error(`The guide has no snippet in ${language}.`)
  return found
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function start(
  command: string,
  args: readonly string[],
  code: string,
): Promise<{ port: number; output: () => string }> {
  const port = await freePort()
  const child = spawn(command, args, { env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: secret } })
  let text = ''
  child.stdout.on('data', (chunk) => {
    text += String(chunk)
  })
  running.push(() => child.kill())
  child.stdin.end(code)
  return { port, output: () => text }
}

async function send(port: number, { id = 'msg_1', ageS = 0, secrets = [secret], body = '{"event":"job_finished"}' }) {
  const timestamp = Math.floor(Date.now() / 1_000) - ageS
  const headers = webhookHeaders({ id, timestamp, body: body.replace('forged', 'finished') }, secrets)
  return deliver.send({ url: `http://127.0.0.1:${port}/`, headers, body })
}

/** The first message is repeated until the receiver listens. */
async function arrived(port: number): Promise<Sent> {
  for (;;) {
    const sent = await send(port, {})
    if (sent.type === 'answered') return sent
    await pause(20)
  }
}

/** What it answers to genuine messages, and to others. */
async function answersOf(port: number): Promise<Record<'genuine' | 'other', readonly unknown[]>> {
  const sent = [
    await arrived(port),
    await send(port, { id: 'msg_2', secrets: [foreign, secret] }),
    await send(port, { id: 'msg_3', body: '{"text":"über → 🎭"}' }),
    await send(port, { id: 'bad_1', secrets: [old] }),
    await send(port, { id: 'bad_2', body: '{"event":"job_forged"}' }),
    await send(port, { id: 'bad_3', ageS: 400 }),
    await deliver.send({ url: `http://127.0.0.1:${port}/`, headers: {}, body: '{}' }),
  ].map((one) => (one.type === 'answered' ? one.status : one.error))
  return { genuine: sent.slice(0, 3), other: sent.slice(3) }
}

const RIGHT = { genuine: [204, 204, 204], other: [401, 401, 401, 401] }

test('[H-07] the receiver in JavaScript of the guide takes what is genuine and nothing else', async () => {
  const { port, output } = await start(process.execPath, ['--input-type=module', '-'], await snippet('js'))
  expect(await answersOf(port)).toEqual(RIGHT)
  while (!output().includes('msg_3')) await pause(10)
  expect(output()).not.toContain('bad')
})

const hasPython = spawnSync('python3', ['--version']).status === 0

test.skipIf(!hasPython)('[H-07] the receiver in Python of the guide does the same', async () => {
  const { port, output } = await start('python3', ['-'], await snippet('python'))
  expect(await answersOf(port)).toEqual(RIGHT)
  while (!output().includes('msg_3')) await pause(10)
  expect(output()).not.toContain('bad')
})
