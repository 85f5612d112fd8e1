import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { refuseEarly } from './early-refusal.ts'
import { LoadShedding } from './load-shedding.ts'

const BODY = '{"a":1}'
const post = (path: string, body = BODY, type = 'application/json'): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`

class Overloaded {
  readonly app: FastifyInstance
  readonly shedding = new LoadShedding(500, () => 1)
  /** Bodies that reached a route. */
  readonly bodies: unknown[] = []
  #release: () => void = () => {}

  constructor() {
    this.app = fastify()
    refuseEarly(this.app, this.shedding)
    this.app.post('/jobs', { config: { isNewWork: true } }, (request) => this.#take('job', request.body))
    this.app.post('/results', (request) => this.#take('result', request.body))
    this.app.get('/slow', async () => {
      await new Promise<void>((resolve) => (this.#release = resolve))
      return { kind: 'slow' }
    })
  }

  #take(kind: string, body: unknown): { kind: string } {
    this.bodies.push(body)
    return { kind }
  }

  release(): void {
    this.#release()
  }

  begin(): void {
    for (let index = 0; index < 5_000; index += 1) this.shedding.began()
    for (let beats = 0; beats < 60; beats += 1) this.shedding.beat(50)
  }

  end(): void {
    for (let index = 0; index < 5_000; index += 1) this.shedding.ended()
    for (let beats = 0; beats < 20; beats += 1) this.shedding.beat(50)
  }
}

/** A connection, and what came back over it: one answer for each, in the order in which they came. */
class Line {
  readonly socket: Socket
  #received = ''

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1').setEncoding('latin1').setNoDelay()
    this.socket.on('data', (chunk) => (this.#received += String(chunk)))
    this.socket.on('error', () => undefined)
  }

  send(text: string): void {
    this.socket.write(text, 'latin1')
  }

  async answer(): Promise<{ readonly status: number; readonly head: string; readonly body: string }> {
    for (;;) {
      const end = this.#received.indexOf('\r\n\r\n')
      const head = this.#received.slice(0, end)
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (end !== -1 && this.#received.length >= end + 4 + length) {
        const body = this.#received.slice(end + 4, end + 4 + length)
        this.#received = this.#received.slice(end + 4 + length)
        return { status: Number(head.slice(9, 12)), head, body }
      }
      await once(this.socket, 'data')
    }
  }

  async ask(text: string): ReturnType<Line['answer']> {
    this.send(text)
    return this.answer()
  }

  /** Until it is refused without Node, which would tell the time. */
  async becomeOurs(): Promise<void> {
    while (/\r\ndate:/i.test((await this.ask(post('/jobs'))).head));
  }
}

async function start(
  overloaded = new Overloaded(),
): Promise<{ readonly overloaded: Overloaded; readonly open: () => Line }> {
  const { app } = overloaded
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const lines: Line[] = []
  onTestFinished(async () => {
    for (const { socket } of lines) socket.destroy()
    await app.close()
  })
  const open = (): Line => {
    const line = new Line(Number(port))
    lines.push(line)
    return line
  }
  return { overloaded, open }
}

test('[I-09] a connection that was refused gets the same refusal without Node, and everything else as before', async () => {
  const { overloaded, open } = await start()
  overloaded.begin()
  const line = open()
  const first = await line.ask(post('/jobs'))
  await line.becomeOurs()
  const later = await line.ask(post('/jobs'))
  expect([first.status, later.status]).toEqual([503, 503])
  expect(later.body).toBe(first.body)
  const names = (head: string): string[] =>
    head
      .split('\r\n')
      .slice(1)
      .map((one) => one.toLowerCase())
      .filter((one) => !/^(date|keep-alive):/.test(one))
      .toSorted()
  expect(names(later.head)).toEqual(names(first.head))
  expect(overloaded.bodies).toEqual([])
  expect(await line.ask(post('/results'))).toMatchObject({ status: 200, body: '{"kind":"result"}' })
  expect((await line.ask(post('/jobs'))).head).not.toMatch(/\r\ndate:/i)
  overloaded.end()
  expect(await line.ask(post('/jobs'))).toMatchObject({ status: 200, body: '{"kind":"job"}' })
  // And from the beginning again.
  overloaded.begin()
  await line.becomeOurs()
})

test('[I-09] connections that wait when an overload begins are refused without Node from the first time on', async () => {
  const { overloaded, open } = await start()
  const [one, other] = [open(), open()]
  expect((await one.ask(post('/jobs'))).status).toBe(200)
  expect((await other.ask(post('/jobs'))).status).toBe(200)
  overloaded.begin()
  expect((await one.ask(post('/jobs'))).head).toMatch(/\r\ndate:/i)
  const refused = await other.ask(post('/jobs'))
  expect(refused.status).toBe(503)
  expect(refused.head).not.toMatch(/\r\ndate:/i)
})

test('[C-10] a body that looks like a request is never taken for one, however it is cut', async () => {
  const { overloaded, open } = await start()
  overloaded.begin()
  const inner = post('/jobs', '{}')
  const body = 'x'.repeat(100) + inner
  const text = post('/results', body, 'text/plain')
  const head = text.length - body.length
  for (const cut of [3, head - 2, head, head + 1, head + 100, text.length - 3]) {
    const line = open()
    await line.becomeOurs()
    line.send(text.slice(0, cut))
    // The server has read it when it has answered another connection.
    const other = open()
    for (let round = 0; round < 3; round += 1) await other.ask(post('/results'))
    line.send(text.slice(cut))
    // One answer for all of it, and the next answer belongs to the next request.
    expect([cut, (await line.answer()).body]).toEqual([cut, '{"kind":"result"}'])
    expect(overloaded.bodies.at(-1)).toBe(body)
    expect([cut, (await line.ask(post('/results'))).body]).toEqual([cut, '{"kind":"result"}'])
  }
})

test('[C-10] while the beginning of a request waits in the parser of Node, the connection stays with Node', async () => {
  const { overloaded, open } = await start()
  overloaded.begin()
  for (const begun of [
    'G',
    'POST /results HTTP/1.1\r\nX: ',
    'POST /results HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n',
  ]) {
    const line = open()
    line.send(`${post('/jobs')}${begun}`)
    expect((await line.answer()).status).toBe(503)
    const other = open()
    await other.becomeOurs()
    // Continues what was begun: as a path, a header or a body.
    line.send(post('/jobs'))
    line.send('\r\n'.repeat(60))
    const answer = await line.answer()
    expect([begun, answer.status]).not.toEqual([begun, 503])
  }
})

test('[I-09] requests that come together are answered in their order', async () => {
  const { overloaded, open } = await start()
  overloaded.begin()
  const line = open()
  await line.becomeOurs()
  line.send(post('/jobs') + post('/jobs') + post('/results') + post('/jobs'))
  const statuses = []
  for (let index = 0; index < 4; index += 1) statuses.push((await line.answer()).status)
  expect(statuses).toEqual([503, 503, 200, 503])
  await line.becomeOurs()
  line.send(get('/slow'))
  line.send(post('/jobs'))
  const other = open()
  for (let round = 0; round < 3; round += 1) await other.ask(post('/results'))
  overloaded.release()
  expect((await line.answer()).body).toBe('{"kind":"slow"}')
  expect((await line.answer()).status).toBe(503)
})

test('[I-09] where Node does not say what its parsers do, it refuses by itself', async () => {
  const overloaded = new Overloaded()
  const { open } = await start(overloaded)
  const { server } = overloaded.app
  const symbol = Object.getOwnPropertySymbols(server).find(
    ({ description }) => description === 'http.server.connections',
  )
  if (symbol === undefined) throw new Error('This version of Node keeps its connections elsewhere.')
  const list: unknown = Reflect.get(server, symbol)
  if (typeof list !== 'object' || list === null) throw new Error('There is no list of connections.')
  Reflect.set(list, 'active', () => [])
  overloaded.begin()
  const line = open()
  for (let round = 0; round < 20; round += 1) {
    const { status, head } = await line.ask(post('/jobs'))
    expect(status).toBe(503)
    expect(head).toMatch(/\r\ndate:/i)
  }
})

test('[I-09] a connection that changes its protocol is left alone', async () => {
  const { overloaded, open } = await start()
  overloaded.app.server.on('upgrade', (_request, socket: Socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n')
    socket.on('data', (chunk) => socket.write(chunk))
    socket.on('end', () => socket.end())
  })
  overloaded.begin()
  const line = open()
  await line.becomeOurs()
  const upgrade = await line.ask('GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n')
  expect(upgrade.status).toBe(101)
  line.send(post('/jobs'))
  const [echo] = (await once(line.socket, 'data')) as [string]
  expect(echo).toBe(post('/jobs'))
})
