import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import type { Data, DataObject } from '@impresario/protocol'
import { STRICT_POLICY } from '@impresario/webhooks'
import { afterEach, describe, expect, test } from 'vitest'
import { httpRequest } from './built-in/http-request.ts'
import { log, transform } from './built-in/small.ts'
import { runTool } from './run-tool.ts'
import { ToolRegistry } from './tool-registry.ts'
import type { BuiltInTool } from './tool.ts'

const OPEN = { allowHttp: true, allowPrivate: true, allowedPorts: [{ from: 1, to: 65_535 }] }
const KEY = '\uFDD1KEY\uFDD2'
const stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

async function served(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stops.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function run(tool: BuiltInTool, input: DataObject, signal = new AbortController().signal): Promise<Data> {
  const registry = new ToolRegistry()
  registry.add([tool])
  const registered = registry.named(tool.name)
  if (registered === undefined) throw new Error('not registered')
  const call = {
    signal,
    idempotencyKey: 'once',
    owner: 'anna',
    runId: 'run',
    meter: () => Promise.resolve(),
    log: () => {},
  }
  return runTool(input, { registered, secrets: { KEY: 'very-secret-value' }, call })
}

const odd = (answer: BuiltInTool['run'], output: DataObject = {}): BuiltInTool => ({
  ...transform,
  name: 'odd',
  input: {},
  output,
  run: answer,
})

describe('[K-10] tools have schemas, and both are enforced', () => {
  test('input that does not fit is refused before the tool runs', async () => {
    await expect(run(log, { text: 'x' })).rejects.toMatchObject({
      code: 'INVALID_INPUT_ERROR',
      message: expect.stringMatching(/The input of log does not fit: .*message/) as unknown,
    })
  })

  test('output that does not fit fails the step, and no tool harms more than that', async () => {
    const number = { type: 'object', properties: { n: { type: 'number' } } }
    await expect(
      run(
        odd(() => ({ n: 'x' }), number),
        {},
      ),
    ).rejects.toThrow(/The output of odd does not fit: n: must be number/)
    await expect(
      run(
        odd(() => 'x'.repeat(300_000)),
        {},
      ),
    ).rejects.toThrow(/300002 characters; 262144 are allowed/)
    await expect(
      run(
        odd(() => JSON.parse(`${'['.repeat(3_000)}${']'.repeat(3_000)}`) as Data),
        {},
      ),
    ).rejects.toThrow(/odd: The output of the step is nested deeper than 48 levels/)
    await expect(
      run(
        odd(() => undefined as unknown as Data),
        {},
      ),
    ).rejects.toThrow(/not JSON/)
    await expect(
      run(
        odd(() => Promise.reject(new Error('boom'))),
        {},
      ),
    ).rejects.toMatchObject({ code: 'TRANSIENT_ERROR', message: 'odd failed: boom' })
    await expect(
      run(
        odd(() => new Promise(() => {})),
        {},
        AbortSignal.abort(),
      ),
    ).rejects.toThrow(/was stopped/)
  })

  test.each([
    [{ type: 'nonsense' }, /input schema of "odd" is not a valid JSON Schema/],
    [{ $ref: 'https://example.com/x.json' }, /refers to another document/],
    [{ type: 'string', pattern: '^(a+)+$' }, /repeats a repetition/],
  ])('a schema that cannot work is refused: %j', (input, message) => {
    expect(() => new ToolRegistry().add([{ ...odd(() => 1), input }])).toThrow(message)
  })

  test('names are unique and checked; names that are like another one are found', () => {
    const registry = new ToolRegistry()
    registry.add([log, transform])
    expect(() => registry.add([log])).toThrow(/There is a tool "log" already/)
    expect(() => registry.add([{ ...log, name: 'a b' }])).toThrow(/is not a name for a tool/)
    const all = registry.checkFor(() => true)
    expect(all.similar('trnsform')).toEqual(['transform'])
    expect(all.named('log')?.check({})).toHaveLength(1)
    expect(registry.checkFor(() => false).named('log')).toBeUndefined()
  })
})

describe('[K-10] secrets', () => {
  test('are there in the call, and nowhere in what comes back', async () => {
    let seen: Data = null
    const echo = odd((input) => {
      seen = input['a'] ?? null
      return { back: `It was ${seen as string}` }
    })
    expect(await run(echo, { a: KEY })).toEqual({ back: 'It was [secret KEY]' })
    expect(seen).toBe('very-secret-value')
    const leaky = odd(({ a }) => Promise.reject(new Error(`bad key ${a as string}`)))
    await expect(run(leaky, { a: KEY })).rejects.toThrow('odd failed: bad key [secret KEY]')
    await expect(run(echo, { a: '\uFDD1OTHER\uFDD2' })).rejects.toThrow('There is no secret "OTHER".')
  })
})

describe('[K-10] http.request', () => {
  const tool = httpRequest({ policy: OPEN })

  test('sends what it is told and parses JSON', async () => {
    const url = await served((request, reply) => {
      reply.setHeader('content-type', 'application/json')
      reply.end(
        JSON.stringify({
          method: request.method,
          path: request.url,
          key: request.headers['idempotency-key'],
          auth: request.headers.authorization,
        }),
      )
    })
    const input = {
      url: `${url}/a`,
      method: 'POST',
      query: { q: 'ä&b' },
      json: { x: 1 },
      headers: { Authorization: `Bearer ${KEY}` },
    }
    expect(await run(tool, input)).toMatchObject({
      status: 200,
      body: { method: 'POST', path: '/a?q=%C3%A4%26b', key: 'once', auth: 'Bearer [secret KEY]' },
    })
  })

  test('statuses decide whether it is tried again', async () => {
    const url = await served((request, reply) => reply.writeHead(Number(request.url?.slice(1))).end('why'))
    await expect(run(tool, { url: `${url}/503` })).rejects.toMatchObject({
      code: 'TRANSIENT_ERROR',
      message: 'The server answered 503: why',
    })
    await expect(run(tool, { url: `${url}/404` })).rejects.toMatchObject({ code: 'PERMANENT_ERROR' })
    expect(await run(tool, { url: `${url}/404`, expect_status: [404] })).toMatchObject({ status: 404, body: 'why' })
    expect(await run(tool, { url: `${url}/302` })).toMatchObject({ status: 302 })
  })

  test('an answer of 100 MB is cut off, and a server that does not answer is left', async () => {
    const url = await served((request, reply) => {
      if (request.url === '/hang') return
      const chunk = Buffer.alloc(65_536, 'x')
      const write = (): void => {
        while (reply.write(chunk));
      }
      reply.on('drain', write)
      write()
    })
    await expect(run(tool, { url })).rejects.toMatchObject({
      code: 'PERMANENT_ERROR',
      message: 'The answer is longer than 200000 bytes.',
    })
    const controller = new AbortController()
    const hanging = run(tool, { url: `${url}/hang` }, controller.signal)
    controller.abort()
    await expect(hanging).rejects.toMatchObject({ code: 'TRANSIENT_ERROR' })
  })

  test.each([
    [{ url: 'http://127.0.0.1/' }, /must begin with https/],
    [{ url: 'https://169.254.169.254/latest' }, /points to/],
    [{ url: 'https://localhost/' }, /points to this machine/],
    [{ url: 'file:///etc/passwd' }, /must begin with https/],
    [{ url: 'https://example.com/', headers: { 'x\r\ny': 'z' } }, /cannot be set/],
    [{ url: 'https://example.com/', headers: { Host: 'other' } }, /cannot be set/],
    [{ url: 'https://example.com/', json: 1, body: 'x' }, /not both/],
  ])('%j is refused', async (input, message) => {
    const strict = httpRequest({ policy: STRICT_POLICY, resolve: () => Promise.resolve(['203.0.113.1']) })
    await expect(run(strict, input)).rejects.toThrow(message)
  })

  test('a name that leads inside is refused, whatever it answered before', async () => {
    const strict = httpRequest({ policy: STRICT_POLICY, resolve: () => Promise.resolve(['10.0.0.1']) })
    await expect(run(strict, { url: 'https://example.com/' })).rejects.toThrow(/leads to no address/)
  })
})
