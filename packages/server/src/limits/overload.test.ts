import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { blueprint } from '@impresario/core'
import { newStorageUrl } from '../../../../test/servers/storage-ground.ts'
import { SILENT } from '../runtime/log.ts'
import { createOrchestrator } from '../orchestrator.ts'
import { CLIENT_TOKEN, startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'
import type { ServerOptions } from '../server.ts'

const MB = 1_048_576

async function start(options: ServerOptions): Promise<TestServer> {
  const app = await startTestServer(options)
  onTestFinished(() => app.server.stop())
  return app
}

const large = (chars: number): object => ({ parts: Array.from({ length: 4 }, () => 'x'.repeat(chars / 4)) })

test('[C-10] [I-09] of more large jobs than fit some are taken and all others refused with 503, and nothing breaks', async () => {
  const app = await start({ admissionBounds: { jobBytesMax: 8 * MB, bodyBytesMax: 4 * MB } })
  const text = JSON.stringify({ blueprint: 'echo', initial_data: large(900_000) })
  const requests = Array.from({ length: 20 }, () => sending(app, text.length))
  const answers = requests.map(async (request) => {
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    return {
      request,
      status: answer.statusCode,
      retryAfter: Number(answer.headers['retry-after']),
      body: await json(answer),
    }
  })
  // Half of each: four have room.
  for (const request of requests) request.write(text.slice(0, 500_000))
  const done: unknown[] = []
  for (const answer of answers) void answer.then((one) => done.push(one))
  while (done.length < 16) await new Promise(setImmediate)
  for (const request of requests) request.end(text.slice(500_000))
  const all = await Promise.all(answers)
  const refused = all.filter(({ status }) => status === 503)
  const taken = all.filter(({ status }) => status === 202)
  expect(refused.length).toBeGreaterThanOrEqual(16)
  expect(taken.length).toBeGreaterThan(0)
  expect(refused.length + taken.length).toBe(20)
  for (const { retryAfter, body } of refused) {
    expect(body).toMatchObject({ code: 'OVERLOADED' })
    expect(retryAfter).toBeGreaterThan(0)
  }
  // The load has fallen: whoever comes now is taken.
  const create = () => app.client('POST', '/api/v1/jobs', { blueprint: 'echo', initial_data: large(900_000) })
  while ((await create()).status !== 202);
  for (const { body } of taken) {
    const job = await app.client('GET', `/api/v1/jobs/${String(body['job_id'])}`)
    expect(job.body['initial_data']).toEqual(large(900_000))
  }
})

async function json(answer: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const chunks: Buffer[] = []
  for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString()) as Readonly<Record<string, unknown>>
}

/** A request to start a job whose body does not come by itself. */
function sending({ address }: TestServer, bytes: number): ClientRequest {
  const headers = { 'x-client-token': CLIENT_TOKEN, 'content-type': 'application/json', 'content-length': bytes }
  const request = httpRequest(`${address}/api/v1/jobs`, { method: 'POST', headers })
  request.on('error', () => undefined)
  request.flushHeaders()
  onTestFinished(() => {
    request.destroy()
  })
  return request
}

/** The status with which it is refused at once; nothing for one that is let in. */
async function answerTo(request: ClientRequest): Promise<number | undefined> {
  const answer = once(request, 'response', { signal: AbortSignal.timeout(200) }) as Promise<[IncomingMessage]>
  const status = await answer.then(([{ statusCode }]) => statusCode).catch(() => undefined)
  request.destroy()
  return status
}

test('[I-09] results and heartbeats are taken while new jobs are refused', async () => {
  const app = await start({ admissionBounds: { jobBytesMax: 1, bodyBytesMax: MB } })
  await app.register('w')
  const jobId = await app.createJob('echo')
  const { body } = await app.poll('w')
  // Half of the room for bodies is taken up by one that is still on its way.
  const slow = sending(app, 700_000)
  slow.write('['.padEnd(600_000))
  // Until the server has read what was sent.
  while ((await answerTo(sending(app, 20_000))) !== 503);
  const create = () => app.client('POST', '/api/v1/jobs', { blueprint: 'echo', initial_data: large(20_000) })
  expect((await create()).status).toBe(503)
  const beat = await app.worker('PATCH', '/_worker/workers/w', { worker_id: 'w', status: 'idle', current_tasks: [] })
  expect(beat.status).toBeLessThan(300)
  const result = { job_id: jobId, task_id: body.task_id, worker_id: 'w', status: 'success', data: large(100_000) }
  expect((await app.worker('POST', '/_worker/tasks/result', result)).status).toBe(200)
  expect((await app.ended(jobId)).body['status']).toBe('finished')
  slow.destroy()
  while ((await create()).status !== 202);
})

test('[C-10] packed bodies count as what they become', async () => {
  const app = await start({ admissionBounds: { bodyBytesMax: MB } })
  // A little of the room is taken up, so that the packed one is not alone.
  const slow = sending(app, 100_000)
  slow.write('['.padEnd(50_000))
  while ((await answerTo(sending(app, 500_000))) !== 503);
  const headers = {
    'x-client-token': CLIENT_TOKEN,
    'content-type': 'application/json',
    'content-encoding': 'gzip',
  }
  const create = async (chars: number): Promise<number> => {
    const body = gzipSync(JSON.stringify({ blueprint: 'echo', initial_data: large(chars) }))
    const { status } = await fetch(`${app.address}/api/v1/jobs`, { method: 'POST', headers, body })
    return status
  }
  expect(await create(600_000)).toBe(503)
  expect(await create(40_000)).toBe(202)
})

test('[I-09] a program that embeds an orchestrator gets the same refusal as an error', async () => {
  const slow = blueprint('slow', { start: 'end' }, (state) => ({ end: state.end() }))
  const orchestrator = createOrchestrator({
    blueprints: [slow],
    log: SILENT,
    settings: { storageUrl: newStorageUrl() },
    admissionBounds: { jobBytesMax: 10_000 },
  })
  await orchestrator.start()
  onTestFinished(() => orchestrator.stop())
  const client = orchestrator.client()
  const starts = Array.from({ length: 20 }, () => client.start('slow', { text: 'x'.repeat(4_000) }))
  const outcomes = await Promise.allSettled(starts)
  expect(outcomes.some(({ status }) => status === 'fulfilled')).toBe(true)
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  expect(refused.length).toBeGreaterThan(0)
  for (const { reason } of refused) expect(reason).toMatchObject({ code: 'OVERLOADED', retry: 'later' })
  await client.start('slow', {})
})

test('[C-10] bodies of requests over one connection that is gone take up no room', async () => {
  const app = await start({ admissionBounds: { bodyBytesMax: 400_000 } })
  const { hostname, port } = new URL(app.address)
  const body = JSON.stringify({ blueprint: 'echo', initial_data: large(15_000) })
  const head = `POST /api/v1/jobs HTTP/1.1\r\nhost: x\r\nx-client-token: ${CLIENT_TOKEN}\r\ncontent-type: application/json\r\n`
  const text = `${head}content-length: ${body.length}\r\n\r\n${body}`
  for (let round = 0; round < 10; round += 1) {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    await new Promise((resolve) => socket.write(text.repeat(10), resolve))
    await new Promise((resolve) => setTimeout(resolve, 5 * round))
    socket.destroy()
  }
  const create = () => app.client('POST', '/api/v1/jobs', { blueprint: 'echo', initial_data: large(100_000) })
  let { status } = await create()
  while (status === 503) ({ status } = await create())
  expect(status).toBe(202)
})
