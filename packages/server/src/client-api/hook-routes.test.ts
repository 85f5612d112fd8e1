import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listIn, startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'

let app: TenantServer

beforeAll(async () => {
  app = await startTenantServer()
})
afterAll(() => app.close())

const SECRET = 'a secret of the tests'
const PUSH = JSON.stringify({ ref: 'refs/heads/main', after: 'abc', big: 12_345_678_901_234_567_890n.toString() })
const hmac = (text: string, secret = SECRET): string => createHmac('sha256', secret).update(text).digest('hex')

async function source(name: string, body: object): Promise<string> {
  const { status, body: made, text } = await app.as('alpha', 'PUT', `/api/v1/hooks/${name}`, body)
  expect({ status, text }).toMatchObject({ status: 200 })
  return new URL(String(made['url']), app.address).pathname
}

interface Sent {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

async function send(path: string, text: string, headers: Readonly<Record<string, string>>): Promise<Sent> {
  const init = { method: 'POST', body: text, headers: { 'content-type': 'application/json', ...headers } }
  const answer = await fetch(`${app.address}${path}`, init)
  return { status: answer.status, body: (await answer.json()) as Sent['body'] }
}

function github(text: string, delivery: string, event = 'push'): Readonly<Record<string, string>> {
  return { 'x-github-event': event, 'x-github-delivery': delivery, 'x-hub-signature-256': `sha256=${hmac(text)}` }
}

function automation(more: object): Promise<string> {
  const pipeline = [{ id: 'tell', uses: 'log', with: { message: '${event.topic} ${event.payload.ref}' } }]
  return app
    .as('alpha', 'POST', '/api/v1/automations', { title: 'Hear', pipeline, ...more })
    .then(({ body }) => String(body['id']))
}

function runsOf(id: string, count: number): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return vi.waitFor(async () => {
    const runs = listIn(await app.as('alpha', 'GET', `/api/v1/runs?automation_id=${id}`))
    expect(runs).toHaveLength(count)
    for (const run of runs) expect(run['status']).toBe('succeeded')
    return runs
  }, 60_000)
}

describe('[K-15] inbound webhooks', () => {
  test('a signed push of GitHub becomes github.push, and starts those that listen to the topic or to the source', async () => {
    const path = await source('repo', { preset: 'github', secret: SECRET })
    const byTopic = await automation({ triggers: [{ event: 'github.push' }] })
    const bySource = await automation({
      triggers: [{ kind: 'webhook', source: 'repo', filter: "event.payload.after == 'abc'" }],
    })
    const first = await send(path, PUSH, github(PUSH, 'guid-1'))
    expect(first).toMatchObject({ status: 200, body: { topic: 'github.push' } })
    const [run] = await runsOf(byTopic, 1)
    expect(run).toMatchObject({ trigger: { kind: 'webhook', event_id: first.body['event_id'] } })
    expect(run?.['output']).toEqual({ message: 'github.push refs/heads/main' })
    await runsOf(bySource, 1)
    const again = await send(path, PUSH, github(PUSH, 'guid-1'))
    expect(again.body).toEqual(first.body)
    const events = listIn(await app.as('alpha', 'GET', '/api/v1/automations/events?topic=github.push'))
    expect(events).toMatchObject([{ id: first.body['event_id'], source: 'repo', owner: 'alpha' }])
    expect((await app.as('alpha', 'DELETE', '/api/v1/hooks/repo')).status).toBe(409)
  })

  test('what is not signed with the secret is refused, and so is an address that is not there', async () => {
    const path = await source('strict', { preset: 'github', secret: SECRET })
    const wrong = { ...github(PUSH, 'guid-2'), 'x-hub-signature-256': `sha256=${hmac(PUSH, 'another secret')}` }
    expect((await send(path, PUSH, wrong)).status).toBe(401)
    expect((await send(path, `${PUSH} `, github(PUSH, 'guid-2'))).status).toBe(401)
    expect((await send(`${path}x`, PUSH, github(PUSH, 'guid-2'))).status).toBe(404)
    expect((await send(path, 'no json', github('no json', 'guid-3'))).status).toBe(400)
    const long = JSON.stringify({ text: 'x'.repeat(70_000) })
    expect((await send(path, long, github(long, 'guid-4'))).status).toBe(422)
    const longer = 'x'.repeat(1_200_000)
    expect((await send(path, longer, github(longer, 'guid-5'))).status).toBe(413)
    expect(listIn(await app.as('alpha', 'GET', '/api/v1/automations/events?topic=github.message'))).toEqual([])
  })

  test('Slack gets its challenge back, and only with a signature; GitHub may send forms', async () => {
    const path = await source('chat', { preset: 'slack', secret: SECRET })
    const text = JSON.stringify({ type: 'url_verification', challenge: 'say it' })
    const time = String(Math.floor(Date.now() / 1_000))
    const signed = { 'x-slack-request-timestamp': time, 'x-slack-signature': `v0=${hmac(`v0:${time}:${text}`)}` }
    expect(await send(path, text, signed)).toEqual({ status: 200, body: { challenge: 'say it' } })
    expect((await send(path, text, { ...signed, 'x-slack-signature': 'v0=00' })).status).toBe(401)
    const form = `payload=${encodeURIComponent(PUSH)}`
    const repo = await source('forms', { preset: 'github', secret: SECRET })
    const headers = { ...github(form, 'guid-6', 'ping'), 'content-type': 'application/x-www-form-urlencoded' }
    expect(await send(repo, form, headers)).toMatchObject({ status: 200, body: { topic: 'github.ping' } })
  })

  test('expressions over body and headers make topic and payload; secrets are not among the headers', async () => {
    const path = await source('monitor', {
      preset: 'token',
      secret: SECRET,
      topic: "join('.', ['alert', body.level])",
      payload: '{level: body.level, agent: headers.x_agent, seen: headers}',
      signature: { header: 'X-Monitor-Token', delivery_header: 'X-Id' },
    })
    const headers = { 'x-monitor-token': SECRET, 'x-agent': 'probe', 'x-id': '7', cookie: `a=${SECRET}` }
    const sent = await send(path, '{"level": "critical"}', headers)
    expect(sent).toMatchObject({ status: 200, body: { topic: 'alert.critical' } })
    const event = await app.as('alpha', 'GET', `/api/v1/automations/events/${String(sent.body['event_id'])}`)
    expect(event.body['payload']).toMatchObject({ level: 'critical', agent: 'probe' })
    expect(event.text).not.toContain(SECRET)
    expect((await send(path, '{"level": "not a topic"}', { ...headers, 'x-id': '8' })).status).toBe(422)
  })

  test('a message that is sent again as it was signed, by whoever heard it, is the same event', async () => {
    const time = String(Math.floor(Date.now() / 1_000))
    const chat = await source('commands', { preset: 'slack', secret: SECRET })
    const text = 'command=%2Fdeploy&text=now&trigger_id=13345224609.738474920'
    const command = {
      'content-type': 'application/x-www-form-urlencoded',
      'x-slack-request-timestamp': time,
      'x-slack-signature': `v0=${hmac(`v0:${time}:${text}`)}`,
    }
    const timed = await source('timed', {
      preset: 'hmac',
      secret: SECRET,
      signature: { header: 'X-Sig', timestamp_header: 'X-Time' },
    })
    const signed = { 'x-time': time, 'x-sig': hmac(`${time}.${PUSH}`) }
    for (const [path, body, headers] of [
      [chat, text, command],
      [timed, PUSH, signed],
    ] as const) {
      const first = await send(path, body, headers)
      expect(first.status).toBe(200)
      expect(await send(path, body, headers)).toEqual(first)
    }
    // The same words at another time are another message.
    const later = String(Number(time) + 1)
    const other = await send(timed, PUSH, { 'x-time': later, 'x-sig': hmac(`${later}.${PUSH}`) })
    expect(other.body['event_id']).not.toBe((await send(timed, PUSH, signed)).body['event_id'])
  })

  test('a secret of Standard Webhooks is one that libraries of senders can read', async () => {
    const made = await app.as('alpha', 'PUT', '/api/v1/hooks/library', { preset: 'standard' })
    expect(made.body['secret']).toEqual(expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32}$/))
    for (const secret of ['whsec_$$', 'whsec_short']) {
      const refused = await app.as('alpha', 'PUT', '/api/v1/hooks/library', { preset: 'standard', secret })
      expect(refused).toMatchObject({ status: 422, body: { problems: [{ field: 'secret' }] } })
    }
    const unknown = await app.as('alpha', 'PUT', '/api/v1/hooks/library', { preset: 'bitbucket' })
    expect(unknown.body['error']).toMatch(/^body\/preset must be .*: github, gitlab, slack, .*token$/)
  })

  test('a source belongs to its owner, and its secret is shown once, if it was made here', async () => {
    const made = await app.as('alpha', 'PUT', '/api/v1/hooks/own', { preset: 'standard' })
    expect(made.body['secret']).toEqual(expect.stringMatching(/^\S{20,}$/))
    const read = await app.as('alpha', 'GET', '/api/v1/hooks/own')
    expect(read.body).toMatchObject({ name: 'own', preset: 'standard', url: made.body['url'] })
    for (const text of [read.text, (await app.as('alpha', 'GET', '/api/v1/hooks')).text]) {
      expect(text).not.toContain(String(made.body['secret']))
      expect(text).not.toContain('sealed')
    }
    expect((await app.as('beta', 'GET', '/api/v1/hooks/own')).status).toBe(404)
    expect(listIn(await app.as('beta', 'GET', '/api/v1/hooks'))).toEqual([])
    const changed = await app.as('alpha', 'PUT', '/api/v1/hooks/own', { preset: 'standard', description: 'x' })
    expect(changed.body).toMatchObject({ url: made.body['url'], description: 'x' })
    expect(changed.body).not.toHaveProperty('secret')
    const wrong = { preset: 'github', topic: 'nope.x', signature: { header: 'X' } }
    const refused = await app.as('alpha', 'PUT', '/api/v1/hooks/own', wrong)
    expect(refused.status).toBe(422)
    expect(refused.text).toMatch(/topic: .*signature: /)
    expect((await app.as('alpha', 'DELETE', '/api/v1/hooks/own')).status).toBe(204)
    expect((await send(new URL(String(made.body['url']), app.address).pathname, '{}', {})).status).toBe(404)
  })
})
