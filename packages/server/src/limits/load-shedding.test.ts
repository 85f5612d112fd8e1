import { request as httpRequest } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import fastify from 'fastify'
import { refuseEarly } from './early-refusal.ts'
import { LoadShedding } from './load-shedding.ts'

const BEAT_MS = 50
const WAIT_MS = 500
/** Requests come and end by turns. */
const STEPS = 10

/** A server that does so many a beat, of those that are under way. */
class FakeServer {
  busy = 1
  readonly shedding = new LoadShedding(WAIT_MS, () => this.busy)
  readonly #perBeat: number
  #underWay = 0
  refused = 0
  done = 0

  constructor(perBeat: number) {
    this.#perBeat = perBeat
  }

  beat(arrivals: number): void {
    for (let step = 0; step < STEPS; step += 1) {
      for (let index = 0; index < arrivals / STEPS; index += 1) this.#arrive()
      for (let index = 0; index < this.#perBeat / STEPS && this.#underWay > 0; index += 1) this.#end()
    }
    this.shedding.beat(BEAT_MS)
  }

  #arrive(): void {
    if (this.shedding.refuses()) {
      this.refused += 1
      return
    }
    this.#underWay += 1
    this.shedding.began()
  }

  #end(): void {
    this.#underWay -= 1
    this.done += 1
    this.shedding.ended()
  }

  beats(count: number, arrivals: number): void {
    for (let index = 0; index < count; index += 1) this.beat(arrivals)
  }
}

test('[C-10] with three times as much as it can do, a server goes on doing all that it can and refuses the rest', () => {
  const server = new FakeServer(300)
  server.beats(100, 300)
  expect([server.refused, server.shedding.bound]).toEqual([0, Infinity])
  server.done = 0
  server.beats(200, 900)
  expect(server.done).toBe(200 * 300)
  expect(server.refused).toBeGreaterThan(200 * 500)
  // A request that is let in waits for some beats at most.
  expect(server.shedding.bound).toBeLessThan(300 * 2)
})

test('[C-10] when the load falls nobody is refused any more', () => {
  const server = new FakeServer(300)
  server.beats(100, 300)
  server.beats(200, 900)
  server.refused = 0
  server.beats(40, 100)
  expect([server.refused, server.shedding.bound]).toEqual([0, Infinity])
})

test('[C-10] a burst that is worked off in time is not refused', () => {
  const server = new FakeServer(300)
  server.beats(100, 300)
  server.beat(2_500)
  server.beats(100, 250)
  expect(server.refused).toBe(0)
})

test('[C-10] where the event loop has time to spare nothing is refused: it is the storage that is slow', () => {
  const server = new FakeServer(10)
  server.busy = 0.3
  server.beats(200, 50)
  expect(server.refused).toBe(0)
})

test('[C-10] without a longest wait nothing is refused', () => {
  const shedding = new LoadShedding(0, () => 1)
  for (let index = 0; index < 1_000; index += 1) {
    expect(shedding.refuses()).toBe(false)
    shedding.began()
    shedding.beat(BEAT_MS)
  }
})

test('[C-10] [I-09] new work is refused before anything looks at it, with when to come again; all other requests are served', async () => {
  const shedding = new LoadShedding(WAIT_MS, () => 1)
  const app = fastify()
  onTestFinished(() => app.close())
  let looked = 0
  app.addHook('onRequest', (_request, _reply, done) => {
    looked += 1
    done()
  })
  refuseEarly(app, shedding)
  const config = { isNewWork: true }
  app.post('/jobs', { config }, () => ({ ok: true }))
  app.post('/jobs/:id/again', { config }, () => ({ ok: true }))
  app.post('/results', () => ({ ok: true }))
  const address = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const send = (path: string, headers: Record<string, string> = {}) =>
    new Promise<{ status: number | undefined; retryAfter: string | undefined; text: string }>((resolve, reject) => {
      const sent = httpRequest(
        { hostname: address.hostname, port: address.port, path, method: 'POST', headers },
        (answer) => {
          let text = ''
          answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
          answer.on('end', () =>
            resolve({ status: answer.statusCode, retryAfter: answer.headers['retry-after'], text }),
          )
        },
      )
      sent.on('error', reject)
      sent.end()
    })
  expect((await send('/jobs')).status).toBe(200)
  // More under way than can be done.
  for (let index = 0; index < 5_000; index += 1) shedding.began()
  for (let beats = 0; beats < 10; beats += 1) shedding.beat(BEAT_MS)
  looked = 0
  for (const path of ['/jobs', '/jobs?x=1', '/jobs/7/again']) {
    const { status, retryAfter, text } = await send(path)
    expect([path, status, retryAfter]).toEqual([path, 503, '1'])
    expect(JSON.parse(text)).toMatchObject({ code: 'OVERLOADED' })
  }
  expect(looked).toBe(0)
  expect(shedding.takeRefused()).toBe(3)
  expect((await send('/results')).status).toBe(200)
  // Pages of other origins could not read such a refusal.
  expect((await send('/jobs', { origin: 'https://elsewhere.example' })).status).toBe(200)
  for (let index = 0; index < 5_000; index += 1) shedding.ended()
  for (let beats = 0; beats < 20; beats += 1) shedding.beat(BEAT_MS)
  expect((await send('/jobs')).status).toBe(200)
})
