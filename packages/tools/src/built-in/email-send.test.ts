import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import type { AddressInfo } from 'node:net'
import type { Data, DataObject } from '@impresario/protocol'
import { STRICT_POLICY } from '@impresario/webhooks'
import { SMTPServer } from 'smtp-server'
import type { SMTPServerOptions } from 'smtp-server'
import { afterEach, describe, expect, test } from 'vitest'
import { runTool } from '../run-tool.ts'
import { ToolRegistry } from '../tool-registry.ts'
import { emailSend } from './email-send.ts'
import { CERTIFICATE, CERTIFICATE_KEY } from './mail-certificate.fixture.ts'

const OPEN = { allowHttp: true, allowPrivate: true, allowedPorts: [{ from: 1, to: 65_535 }] }
const PASSWORD = '\uFDD1SMTP_PASSWORD\uFDD2'
const stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

interface Received {
  readonly from: string
  readonly to: readonly string[]
  readonly text: string
}

/** A real mail server, for the name `mail.test`. */
async function mailServer(options: SMTPServerOptions = {}): Promise<{ port: number; received: Received[] }> {
  const received: Received[] = []
  const server = new SMTPServer({
    authOptional: true,
    cert: CERTIFICATE,
    key: CERTIFICATE_KEY,
    disabledCommands: ['STARTTLS'],
    onAuth: ({ username, password }, _session, done) =>
      done(password === 'right-password' && username === 'ada' ? null : new Error('Wrong'), { user: username ?? '' }),
    onRcptTo: ({ address }, _session, done) => {
      const code = address.startsWith('full') ? 452 : address.startsWith('gone') ? 550 : undefined
      done(code === undefined ? null : Object.assign(new Error('Not here'), { responseCode: code }))
    },
    onData: (stream, { envelope }, done) => {
      void buffer(stream).then((body) => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
        received.push({ from, to: envelope.rcptTo.map(({ address }) => address), text: body.toString() })
        done()
      })
    },
    ...options,
  })
  server.on('error', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  stops.push(() => server.close())
  return { port: (server.server.address() as AddressInfo).port, received }
}

interface Sending {
  readonly policy?: typeof OPEN
  readonly runId?: string
  readonly signal?: AbortSignal
  readonly ca?: string
}

function send(input: DataObject, { policy = OPEN, runId = 'run', signal, ca }: Sending = {}): Promise<Data> {
  const registry = new ToolRegistry()
  const resolve = (host: string) => Promise.resolve([host === 'mail.test' ? '127.0.0.1' : '203.0.113.1'])
  registry.add([emailSend({ policy, resolve, ...(ca === undefined ? {} : { ca }) })])
  const registered = registry.named('email.send')
  if (registered === undefined) throw new Error('not registered')
  const call = {
    signal: signal ?? new AbortController().signal,
    idempotencyKey: 'once',
    owner: 'anna',
    runId,
    meter: () => Promise.resolve(),
    log: () => {},
  }
  return runTool(input, { registered, secrets: { SMTP_PASSWORD: 'right-password' }, call })
}

const mail = (port: number, more: DataObject = {}): DataObject => ({
  server: { host: '127.0.0.1', port, security: 'none' },
  from: 'Ada Lovelace <ada@example.com>',
  to: 'bob@example.org',
  subject: 'Grüße',
  text: 'Hello Bob',
  ...more,
})

describe('[K-10] email.send', () => {
  test('hands a message to a mail server, with a password that is a secret', async () => {
    const { port, received } = await mailServer()
    const answer = await send(
      mail(port, {
        server: { host: '127.0.0.1', port, security: 'none', user: 'ada', password: PASSWORD },
        to: ['Bob <bob@example.org>', 'eve@bücher.example'],
        cc: 'carol@example.org',
        bcc: ['dan@example.org'],
        reply_to: 'office@example.com',
        html: '<p>Hello</p>',
      }),
    )
    expect(answer).toEqual({
      message_id: expect.stringMatching(/^<[\da-f]{40}@example\.com>$/) as unknown,
      accepted: ['bob@example.org', 'eve@xn--bcher-kva.example', 'carol@example.org', 'dan@example.org'],
      rejected: [],
    })
    const [{ from, to, text } = { from: '', to: [], text: '' }] = received
    expect({ from, to: to.length }).toEqual({ from: 'ada@example.com', to: 4 })
    expect(text).toContain('From: Ada Lovelace <ada@example.com>')
    expect(text).toContain('Reply-To: office@example.com')
    expect(text).toContain(`Message-ID: ${(answer as { readonly message_id: string }).message_id}`)
    expect(text).toMatch(/Hello Bob[\s\S]*<p>Hello<\/p>/)
    expect(text).not.toContain('dan@example.org')
  })

  test('the same message of the same run has the same Message-ID, whatever attempt it is; another has another', async () => {
    const { port, received } = await mailServer()
    for (const [more, runId] of [
      [{}, 'a'],
      [{}, 'a'],
      [{}, 'b'],
      [{ text: 'Other' }, 'a'],
    ] as const) {
      await send(mail(port, more), { runId })
    }
    const ids = received.map(({ text }) => /Message-ID: (\S+)/.exec(text)?.[1])
    expect(new Set(ids).size).toBe(3)
    expect(ids[0]).toBe(ids[1])
  })

  test.each([
    [{ subject: 'Hello\r\nBcc: eve@example.net' }, /The subject has a line break/],
    [{ to: 'bob@example.org\r\nBcc: eve@example.net' }, /"to" has a line break/],
    [{ from: 'Ada\n<ada@example.com>' }, /"from" has a line break/],
    [{ to: 'bob@example.org, eve@example.net' }, /"to" is not an e-mail address/],
    [{ to: '"bob@example.org x"@evil.example' }, /"to" is not an e-mail address/],
    [{ cc: ['bob@example.org', '<script>'] }, /"cc" is not an e-mail address/],
    [{ reply_to: 'bob' }, /"reply_to" is not an e-mail address/],
    [{ from: `${'n'.repeat(201)} <a@example.org>` }, /more than 200 characters/],
    [{ to: Array.from({ length: 50 }, () => 'a@example.org'), cc: 'b@example.org' }, /50 recipients together/],
    [{ subject: 'ü'.repeat(451) }, /The subject may have 900 bytes/],
    [{ text: 'ü'.repeat(100_001) }, /200000 bytes together/],
    [{ text: undefined }, /"text" or "html"/],
    [{ headers: { 'X-Evil': '1' } }, /does not fit/],
  ])('%j is refused before anything is sent', async (more, message) => {
    const { port, received } = await mailServer()
    const { text, ...rest } = { ...mail(port), ...more } as Record<string, Data | undefined>
    const input = (text === undefined ? rest : { ...rest, text }) as DataObject
    await expect(send(input)).rejects.toMatchObject({
      code: 'INVALID_INPUT_ERROR',
      message: expect.stringMatching(message) as unknown,
    })
    expect(received).toEqual([])
  })

  test('a server that says no is not asked again, and one that says not now is', async () => {
    const { port } = await mailServer()
    await expect(send(mail(port, { to: 'gone@example.org' }))).rejects.toMatchObject({
      code: 'PERMANENT_ERROR',
      message: expect.stringContaining('550') as unknown,
    })
    await expect(send(mail(port, { to: 'full@example.org' }))).rejects.toMatchObject({ code: 'TRANSIENT_ERROR' })
    expect(await send(mail(port, { to: ['bob@example.org', 'gone@example.org'] }))).toMatchObject({
      accepted: ['bob@example.org'],
      rejected: ['gone@example.org'],
    })
    const server = { host: '127.0.0.1', port, security: 'none', user: 'eve', password: PASSWORD }
    await expect(send(mail(port, { server }))).rejects.toMatchObject({
      code: 'PERMANENT_ERROR',
      message: expect.not.stringContaining('right-password') as unknown,
    })
  })

  test('speaks TLS from the beginning or after STARTTLS, and checks the name of the server', async () => {
    const secure = await mailServer({ secure: true })
    const startTls = await mailServer({ disabledCommands: [] })
    const wayTo = (port: number, security: string, host = 'mail.test'): DataObject =>
      mail(port, { server: { host, port, security, user: 'ada', password: PASSWORD } })
    await send(wayTo(secure.port, 'tls'), { ca: CERTIFICATE })
    await send(wayTo(startTls.port, 'starttls'), { ca: CERTIFICATE })
    await expect(send(wayTo(secure.port, 'tls', '127.0.0.1'), { ca: CERTIFICATE })).rejects.toThrow('could not be sent')
    expect([secure.received.length, startTls.received.length]).toEqual([1, 1])
  })

  test('a certificate that is not trusted, a server without TLS, and no server at all fail the step alone', async () => {
    const secure = await mailServer({ secure: true })
    const startTls = await mailServer({ disabledCommands: [] })
    const plain = await mailServer()
    for (const [port, security] of [
      [secure.port, 'tls'],
      [startTls.port, 'starttls'],
      [plain.port, 'starttls'],
      [1, 'tls'],
    ] as const) {
      const server = { host: 'mail.test', port, security }
      await expect(send(mail(port, { server }))).rejects.toMatchObject({ name: 'ToolError' })
    }
    expect([secure, startTls, plain].flatMap(({ received }) => received)).toEqual([])
  })

  test('a server that falls silent is left when the step is over', async () => {
    const { port } = await mailServer({ onData: () => undefined })
    const controller = new AbortController()
    const sending = send(mail(port), { signal: controller.signal })
    setImmediate(() => controller.abort())
    await expect(sending).rejects.toMatchObject({ code: 'TRANSIENT_ERROR' })
  })

  test.each([
    [{ host: '127.0.0.1' }, /points to this machine/],
    [{ host: 'localhost' }, /points to this machine/],
    [{ host: 'mail.example.com', port: 22 }, /uses port 22, which is not allowed/],
    [{ host: 'mail.example.com', security: 'none' }, /without encryption is not allowed/],
    [{ host: 'mail.example.com/x' }, /not an absolute URL|name of a host/],
    [{ host: 'user@mail.example.com' }, /user name|name of a host/],
  ])('the mail server %j is refused', async (server, message) => {
    await expect(send(mail(25, { server }), { policy: { ...STRICT_POLICY, allowedPorts: [] } })).rejects.toThrow(
      message,
    )
  })
})
