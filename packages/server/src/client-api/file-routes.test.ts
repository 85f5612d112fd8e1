import { randomBytes, createHash } from 'node:crypto'
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blueprint } from '@impresario/core'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { echo } from '../server.fixture.ts'
import { createClock } from '../runtime/clock.ts'
import { startTenantServer, TENANTS } from '../tenants.fixture.ts'
import type { Tenant, TenantServer } from '../tenants.fixture.ts'

/** Reads what was put there, and writes what it has made of it. */
const counter = blueprint('counter', { start: 'wait' }, (state) => ({
  wait: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Ready?', transitions: { approved: 'count' } }),
  ),
  count: state.handler(async (context, actions) => {
    const given = (await context.files.readJson('in/numbers.json')) as readonly number[]
    const sum = given.reduce((total, one) => total + one, 0)
    const { uri } = await context.files.writeJson('out/sum.json', { sum })
    const listed = await context.files.list()
    return actions.transitionTo('done', { uri, names: listed.map(({ name }) => name) })
  }),
  done: state.end({ result: ({ stateHistory }) => stateHistory as unknown }),
}))

/** Waits for a person, so that files can be put there first. */
const patient = blueprint('patient', { start: 'wait' }, (state) => ({
  wait: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Ready?', transitions: { approved: 'read' } }),
  ),
  read: state.handler(async (context, actions) => {
    const path = await context.files.download(context.initialData['wanted'] as string)
    const { bytes, name } = await context.files.upload(path, 'copy.bin')
    return actions.transitionTo('done', { bytes, name, path })
  }),
  done: state.end({ result: ({ stateHistory }) => stateHistory as unknown }),
}))

let app: TenantServer
let aheadMs = 0
beforeEach(async () => {
  aheadMs = 0
  const real = createClock()
  const clock = { now: () => real.now() + aheadMs, sleep: (ms: number, signal: AbortSignal) => real.sleep(ms, signal) }
  const settings = { fileBytesMax: 50_000_000, jobFilesMax: 5, jobFilesBytesMax: 60_000_000 }
  app = await startTenantServer({ clock, settings, blueprints: [echo, counter, patient] })
})
afterEach(() => app.close())

interface Sent extends Omit<RequestInit, 'headers'> {
  readonly headers?: Readonly<Record<string, string>>
}

async function send(tenant: Tenant, path: string, init: Sent = {}): Promise<Response> {
  const headers = { 'x-client-token': TENANTS[tenant], ...init.headers }
  return fetch(`${app.address}${path}`, { redirect: 'manual', ...init, headers })
}

async function newJob(tenant: Tenant = 'alpha', name = 'patient', data: object = {}): Promise<string> {
  const { body } = await app.as(tenant, 'POST', '/api/v1/jobs', { blueprint: name, initial_data: data })
  return body.job_id
}

async function goOn(jobId: string): Promise<void> {
  const answer = (): Promise<number> =>
    app
      .as('alpha', 'POST', `/_public/webhooks/approval/${jobId}`, { decision: 'approved' })
      .then(({ status }) => status)
  await expect.poll(answer).toBe(200)
}

async function ended(jobId: string): Promise<Readonly<Record<string, unknown>>> {
  const read = async (): Promise<Readonly<Record<string, unknown>>> =>
    (await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}`)).body
  await expect.poll(async () => (await read())['status']).toBe('finished')
  return read()
}

const files = (jobId: string, rest = ''): string => `/api/v1/jobs/${jobId}/files${rest}`
const content = (jobId: string, name: string): string => files(jobId, `/content/${encodeURIComponent(name)}`)

async function put(
  jobId: string,
  name: string,
  body: BodyInit,
  headers: Record<string, string> = {},
): Promise<Response> {
  return send('alpha', content(jobId, name), { method: 'PUT', body, headers })
}

describe('files of a job', () => {
  test('[J-06] a file is sent, listed, read and deleted', async () => {
    const jobId = await newJob()
    const bytes = randomBytes(300_000)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const sent = await put(jobId, 'in/Größe 100%.bin', bytes, { 'x-content-sha256': sha256 })
    expect(sent.status).toBe(200)
    const uri = `s3://impresario-files/jobs/${jobId}/in/Größe 100%.bin`
    expect(await sent.json()).toMatchObject({ status: 'uploaded', s3_uri: uri, bytes: 300_000, sha256 })
    const { body: listed } = await app.as('alpha', 'GET', files(jobId))
    expect(listed['files']).toMatchObject([{ name: 'in/Größe 100%.bin', uri, bytes: 300_000 }])
    const read = await send('alpha', content(jobId, 'in/Größe 100%.bin'))
    expect(Buffer.from(await read.arrayBuffer()).equals(bytes)).toBe(true)
    expect(read.headers.get('content-disposition')).toBe(
      `attachment; filename="Gr__e 100_.bin"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20100%25.bin`,
    )
    const deleted = await send('alpha', content(jobId, 'in/Größe 100%.bin'), { method: 'DELETE' })
    expect(await deleted.json()).toEqual({ status: 'deleted', name: 'in/Größe 100%.bin' })
    expect((await send('alpha', content(jobId, 'in/Größe 100%.bin'))).status).toBe(404)
  })

  test('[J-06] ranges: a download that broke off goes on, and only while the file is the same', async () => {
    const jobId = await newJob()
    await put(jobId, 'a.txt', '0123456789')
    const part = await send('alpha', content(jobId, 'a.txt'), { headers: { range: 'bytes=4-' } })
    expect([part.status, await part.text(), part.headers.get('content-range')]).toEqual([206, '456789', 'bytes 4-9/10'])
    const etag = part.headers.get('etag') ?? ''
    const same = { headers: { range: 'bytes=-2', 'if-range': etag } }
    expect(await (await send('alpha', content(jobId, 'a.txt'), same)).text()).toBe('89')
    expect((await send('alpha', content(jobId, 'a.txt'), { headers: { 'if-none-match': etag } })).status).toBe(304)
    await put(jobId, 'a.txt', 'another one')
    const changed = await send('alpha', content(jobId, 'a.txt'), same)
    expect([changed.status, await changed.text()]).toEqual([200, 'another one'])
    const behind = await send('alpha', content(jobId, 'a.txt'), { headers: { range: 'bytes=11-' } })
    expect([behind.status, behind.headers.get('content-range')]).toEqual([416, 'bytes */11'])
    for (const range of [
      'bytes=5-2',
      'lines=1-2',
      'bytes=1-2,4-5',
      'bytes=-',
      'bytes=a-b',
      `bytes=${'9'.repeat(40)}-`,
    ]) {
      expect((await send('alpha', content(jobId, 'a.txt'), { headers: { range } })).status).toBe(200)
    }
  })

  test('[J-06] HEAD describes a file and opens none, and who has the file gets nothing of it', async () => {
    const jobId = await newJob()
    await put(jobId, 'page.html', '<script>alert(1)</script>', { 'content-type': 'text/html' })
    const { body: link } = await app.as('alpha', 'GET', files(jobId, '/link?filename=page.html'))
    const signed = new URL(String(link['url']))
    const paths = [content(jobId, 'page.html'), files(jobId, '/download/page.html'), signed.pathname + signed.search]
    for (const path of paths) {
      const head = await send('alpha', path, { method: 'HEAD' })
      expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '25', ''])
      expect(head.headers.get('etag')).toBe((await send('alpha', path)).headers.get('etag'))
      // Whatever was sent as its type: a browser saves it, and does not open it as a page of this server.
      expect(head.headers.get('content-type')).toBe('application/octet-stream')
      expect(head.headers.get('x-content-type-options')).toBe('nosniff')
      expect(head.headers.get('content-disposition')).toMatch(/^attachment;/)
    }
    expect((await send('alpha', content(jobId, 'none.txt'), { method: 'HEAD' })).status).toBe(404)
    expect((await send('beta', content(jobId, 'page.html'), { method: 'HEAD' })).status).toBe(404)
    const etag = (await send('alpha', content(jobId, 'page.html'), { method: 'HEAD' })).headers.get('etag') ?? ''
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const answer = await send('alpha', content(jobId, 'page.html'), { headers: { 'if-none-match': known } })
      expect([known, answer.status, await answer.text()]).toEqual([known, 304, ''])
    }
    const other = await send('alpha', content(jobId, 'page.html'), { headers: { 'if-none-match': '"other"' } })
    expect(other.status).toBe(200)
  })

  test('[J-06] others see no file of it, and cannot write one', async () => {
    const jobId = await newJob()
    await put(jobId, 'secret.txt', 'private')
    const paths = ['', '/content/secret.txt', '/download/secret.txt', '/link?filename=secret.txt', '/upload?filename=x']
    for (const path of paths) expect((await send('beta', files(jobId, path))).status).toBe(404)
    const theirs = await send('beta', content(jobId, 'secret.txt'), { method: 'PUT', body: 'overwritten' })
    expect(theirs.status).toBe(404)
    expect((await send('beta', content(jobId, 'secret.txt'), { method: 'DELETE' })).status).toBe(404)
    expect((await send('viewer', content(jobId, 'new.txt'), { method: 'PUT', body: 'x' })).status).toBe(403)
    expect(await (await send('admin', content(jobId, 'secret.txt'))).text()).toBe('private')
  })

  test('[J-06] an address for an upload and a link for a download need no token, for one file and their time', async () => {
    const jobId = await newJob()
    const grant = await app.as('alpha', 'GET', files(jobId, '/upload?filename=up%2Fload.txt&expires_in=60'))
    expect(grant.body).toMatchObject({ method: 'PUT', expires_in: 60 })
    const url = String(grant.body['url'])
    expect((await fetch(url, { method: 'PUT', body: 'by link' })).status).toBe(200)
    expect((await fetch(url)).status).toBe(401)
    expect((await fetch(url.replace('load.txt', 'other.txt'), { method: 'PUT', body: 'x' })).status).toBe(401)
    const link = String((await app.as('alpha', 'GET', files(jobId, '/link?filename=up%2Fload.txt'))).body['url'])
    expect(await (await fetch(link)).text()).toBe('by link')
    expect(await (await fetch(link, { headers: { range: 'bytes=3-' } })).text()).toBe('link')
    expect((await fetch(link, { method: 'PUT', body: 'x' })).status).toBe(401)
    expect((await fetch(link.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')))).status).toBe(401)
    aheadMs = 61_000
    expect((await fetch(url, { method: 'PUT', body: 'late' })).status).toBe(401)
    expect((await fetch(link)).status).toBe(200)
    expect((await app.as('alpha', 'GET', files(jobId, '/link?filename=absent'))).body).toMatchObject({
      code: 'FILE_NOT_FOUND',
    })
  })

  test('[J-02] what is too large, too much, or another file than announced is refused and leaves nothing', async () => {
    const jobId = await newJob()
    // A sender that is still busy sending may find the connection closed before it reads the answer.
    const tooLarge = await put(jobId, 'large.bin', randomBytes(50_000_001)).then(
      ({ status }) => status,
      () => 413,
    )
    expect(tooLarge).toBe(413)
    const wrong = await put(jobId, 'wrong.bin', 'abc', { 'x-content-sha256': '0'.repeat(64) })
    expect([wrong.status, await wrong.json()]).toMatchObject([422, { code: 'FILE_MISMATCH' }])
    expect((await put(jobId, 'packed.bin', 'abc', { 'content-encoding': 'gzip' })).status).toBe(415)
    for (let index = 0; index < 5; index += 1) expect((await put(jobId, `${index}`, 'x')).status).toBe(200)
    const sixth = await put(jobId, '6', 'x')
    expect([sixth.status, await sixth.json()]).toMatchObject([422, { code: 'LIMIT_EXCEEDED' }])
    expect((await put(jobId, '4', 'replaced')).status).toBe(200)
    const { body } = await app.as('alpha', 'GET', files(jobId))
    expect((body['files'] as { name: string }[]).map(({ name }) => name)).toEqual(['0', '1', '2', '3', '4'])
  })

  test('[J-02] [J-04] a client has so many files in all its jobs, by HTTP, links and handlers alike', async () => {
    await app.close()
    const directory = await mkdtemp(join(tmpdir(), 'impresario-client-limits-'))
    onTestFinished(() => rm(directory, { recursive: true, force: true }))
    const clientsConfigPath = join(directory, 'clients.toml')
    const tables = `[alpha]\ntoken = "${TENANTS.alpha}"\n[beta]\ntoken = "${TENANTS.beta}"\nfiles_max = 1\n`
    await writeFile(clientsConfigPath, tables)
    const settings = { clientFilesMax: 2, clientsConfigPath }
    app = await startTenantServer({ settings, blueprints: [echo, counter, patient] })
    const [first, second] = [await newJob(), await newJob('alpha', 'counter')]
    expect((await put(first, 'one', 'x')).status).toBe(200)
    expect((await put(second, 'in/numbers.json', '[1]')).status).toBe(200)
    const third = await put(first, 'two', 'x')
    expect([third.status, await third.json()]).toMatchObject([422, { code: 'LIMIT_EXCEEDED' }])
    expect((await send('alpha', files(first, '/upload?filename=two&bytes=1'))).status).toBe(422)
    const { body: link } = await app.as('alpha', 'GET', files(first, '/upload?filename=two'))
    expect((await fetch(link['url'] as string, { method: 'PUT', body: 'x' })).status).toBe(422)
    const theirs = await newJob('beta')
    expect((await send('beta', content(theirs, 'x'), { method: 'PUT', body: 'x' })).status).toBe(200)
    const own = await send('beta', content(theirs, 'y'), { method: 'PUT', body: 'x' })
    expect([own.status, await own.text()]).toEqual([422, expect.stringContaining('may have 1 files together')])
    await goOn(second)
    await expect
      .poll(async () => JSON.stringify((await app.as('alpha', 'GET', `/api/v1/jobs/${second}`)).body))
      .toContain('may have 2 files together, and have 2.')
    expect((await send('alpha', content(first, 'one'), { method: 'DELETE' })).status).toBe(200)
    expect((await put(first, 'two', 'x')).status).toBe(200)
  })

  test('[J-02] a cut connection leaves no file', async () => {
    const jobId = await newJob()
    const { hostname, port } = new URL(app.address)
    const socket = connect({ host: hostname, port: Number(port) })
    socket.write(
      `PUT ${content(jobId, 'cut.bin')} HTTP/1.1\r\nhost: x\r\nx-client-token: ${TENANTS.alpha}\r\ncontent-length: 100000\r\n\r\n`,
    )
    socket.write(Buffer.alloc(50_000))
    await new Promise((resolve) => setTimeout(resolve, 200))
    socket.destroy()
    await put(jobId, 'whole.bin', 'x')
    const { body } = await app.as('alpha', 'GET', files(jobId))
    expect((body['files'] as { name: string }[]).map(({ name }) => name)).toEqual(['whole.bin'])
  })

  test('[J-02] a connection that brings many refused files keeps nothing of them', async () => {
    const jobId = await newJob()
    const warnings: string[] = []
    const hear = ({ name, message }: Error): unknown => warnings.push(`${name}: ${message}`)
    process.on('warning', hear)
    onTestFinished(() => {
      process.off('warning', hear)
    })
    const { hostname, port } = new URL(app.address)
    const socket = connect({ host: hostname, port: Number(port) })
    onTestFinished(() => {
      socket.destroy()
    })
    let answers = ''
    socket.setEncoding('latin1')
    socket.on('data', (text) => (answers += String(text)))
    // Node warns of the eleventh listener.
    for (let count = 1; count <= 12; count += 1) {
      socket.write(
        `PUT ${files(jobId, '/content/..%2fx')} HTTP/1.1\r\nhost: x\r\nx-client-token: ${TENANTS.alpha}\r\ncontent-length: 4\r\n\r\n`,
      )
      await expect.poll(() => answers.split('HTTP/1.1 400').length - 1).toBe(count)
      socket.write('late')
    }
    expect(warnings).toEqual([])
  })

  test('[J-01] hostile names are refused by every route', async () => {
    const jobId = await newJob()
    const names = [
      '..%2f..%2fetc%2fpasswd',
      '%2fetc%2fpasswd',
      'a%2f%2fb',
      'a%00b',
      'a%5cb',
      '.%2f..%2fx',
      'k'.repeat(1_025),
    ]
    for (const name of names) {
      for (const method of ['GET', 'PUT', 'DELETE']) {
        const { status } = await send('alpha', files(jobId, `/content/${name}`), {
          method,
          ...(method === 'PUT' ? { body: 'x' } : {}),
        })
        expect([name, method, status]).toEqual([name, method, 400])
      }
      expect((await send('alpha', files(jobId, `/upload?filename=${name}`))).status).toBe(400)
    }
  })
})

describe('files in handlers', () => {
  test('[J-04] [B-01] a handler reads and writes JSON files and lists them', async () => {
    const jobId = await newJob('alpha', 'counter')
    await put(jobId, 'in/numbers.json', '[1, 2, 39]')
    await goOn(jobId)
    expect(await ended(jobId)).toMatchObject({
      status: 'finished',
      result: { names: ['in/numbers.json', 'out/sum.json'], uri: `s3://impresario-files/jobs/${jobId}/out/sum.json` },
    })
    expect(await (await send('alpha', content(jobId, 'out/sum.json'))).json()).toEqual({ sum: 42 })
  })

  test('[J-04] [J-03] local copies go with the turn; files of the same client can be read, those of others cannot', async () => {
    const first = await newJob('alpha')
    const theirs = await newJob('beta')
    await put(first, 'data.bin', randomBytes(100_000))
    await send('beta', content(theirs, 'data.bin'), { method: 'PUT', body: 'secret of beta' })
    const wanted = `s3://impresario-files/jobs/${first}/data.bin`
    const second = await newJob('alpha', 'patient', { wanted })
    await goOn(second)
    const body = await ended(second)
    expect(body).toMatchObject({ status: 'finished', result: { bytes: 100_000, name: 'copy.bin' } })
    const path = (body['result'] as { path: string }).path
    await expect
      .poll(async () =>
        access(path).then(
          () => 'there',
          () => 'gone',
        ),
      )
      .toBe('gone')
    const thief = await newJob('alpha', 'patient', { wanted: `s3://impresario-files/jobs/${theirs}/data.bin` })
    await goOn(thief)
    await expect
      .poll(async () => JSON.stringify((await app.as('alpha', 'GET', `/api/v1/jobs/${thief}`)).body))
      .toContain('There is no file')
  })
})
