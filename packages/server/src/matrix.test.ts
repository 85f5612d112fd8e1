import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { CLIENT_ROLES, isAllowed } from './http/access.ts'
import type { DeclaredRoute } from './http/access.ts'
import { SAMPLE_AUTOMATION, sampleBody } from './route-samples.fixture.ts'
import { startTestServer } from './server.fixture.ts'
import type { Answer, TestServer } from './server.fixture.ts'

/*
 * The table of all routes, as the running server has it, against everybody who may come. A route is asserted the moment
 * it exists; one whose parameters have no sample below fails, so that nobody can add one and forget it here.
 */

const CLIENT_TOKENS = { viewer: 'token-viewer', client: 'token-client', admin: 'token-admin', other: 'token-other' }
const WORKER_TOKENS = { own: 'token-own', second: 'token-second', global: 'token-global' }

/** The worker that the requests are about. */
const WORKER = 'own-worker'
const FREE_WORKER = 'free-worker'

type Headers = Readonly<Record<string, string>>
const client = (token: string): Headers => ({ 'x-client-token': token })
const worker = (token: string, id = WORKER): Headers => ({ 'x-worker-token': token, 'x-worker-id': id })

let directory = ''
let app: TestServer
let routes: readonly DeclaredRoute[] = []
/** Of the client `client`: what the others must not find. */
const samples = new Map<string, string>()

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-matrix-'))
  const clientsConfigPath = join(directory, 'clients.toml')
  const workersConfigPath = join(directory, 'workers.toml')
  const { other, ...roles } = CLIENT_TOKENS
  const tables = Object.entries(roles).map(([name, token]) => `[${name}]\ntoken = "${token}"\nrole = "${name}"\n`)
  await writeFile(clientsConfigPath, [...tables, `[other]\ntoken = "${other}"\n`].join(''))
  await writeFile(
    workersConfigPath,
    `[${WORKER}]\ntoken = "${WORKER_TOKENS.own}"\n[second-worker]\ntoken = "${WORKER_TOKENS.second}"\n`,
  )
  const schedulesConfigPath = join(directory, 'schedules.toml')
  await writeFile(
    schedulesConfigPath,
    `[nightly_feed]\nblueprint = "ask"\ninterval_seconds = 86400\nenabled = false\nclient = "client"\n`,
  )
  app = await startTestServer({
    settings: {
      clientToken: '',
      workerToken: WORKER_TOKENS.global,
      clientsConfigPath,
      workersConfigPath,
      schedulesConfigPath,
    },
  })
  routes = await app.server.routes()
  const as = client(CLIENT_TOKENS.client)
  const body = { blueprint: 'ask', webhook_url: 'https://hooks.example.com/ended' }
  const job = (await app.call('POST', '/api/v1/jobs', { headers: as, body })).body.job_id
  samples.set(
    'job_id',
    (await app.call('POST', '/api/v1/jobs', { headers: as, body: { blueprint: 'ask' } })).body.job_id,
  )
  await app.call('POST', `/api/v1/jobs/${job}/cancel`, { headers: as, body: {} })
  const first = (path: string): Promise<string> =>
    vi.waitFor(async () => {
      const { text } = await app.call('GET', path, { headers: as })
      const [found] = /(?<="id":")[^"]+/.exec(text) ?? []
      if (found === undefined) throw new Error(`${path} lists nothing: ${text}`)
      return found
    }, 60_000)
  samples.set('delivery_id', await first('/api/v1/webhooks/deliveries'))
  samples.set('endpoint_id', await first('/api/v1/webhooks/endpoints'))
  for (const name of ['worker_id', 'workerId']) samples.set(name, WORKER)
  samples.set('schedule', 'nightly_feed')
  const automation = await app.call('POST', '/api/v1/automations', { headers: as, body: SAMPLE_AUTOMATION })
  for (const name of ['automation_id', 'task_id']) samples.set(name, String(automation.body['id']))
  const run = await app.call('POST', `/api/v1/automations/${String(automation.body['id'])}/run`, {
    headers: as,
    body: {},
  })
  samples.set('run_id', String(run.body['run_id']))
  const event = await app.call('POST', '/api/v1/automations/events', { headers: as, body: { topic: 'a.b' } })
  samples.set('event_id', String(event.body['id']))
  samples.set('entry_id', await first('/api/v1/audit'))
  const agent = await app.call('POST', '/api/v1/agents', {
    headers: client(CLIENT_TOKENS.admin),
    body: { name: 'sample', scopes: [] },
  })
  samples.set('agent_id', String(agent.body['id']))
  samples.set('token_id', 'no-such-token')
  samples.set('name', 'echo')
  samples.set('calendar', 'holidays')
  samples.set('hook', 'github')
  samples.set('secret', 'API_KEY')
  samples.set('view', 'Failed')
  samples.set('address', 'no-such-address')
  samples.set('*', 'no-such-thing')
  samples.set('filename', 'report.pdf')
  samples.set('taskId', 'no-such-task')
})

afterAll(async () => {
  await app.server.stop()
  await rm(directory, { recursive: true, force: true })
})

/** Whose things have ids: everybody else must not find them. */
const PRIVATE = [
  'job_id',
  'delivery_id',
  'endpoint_id',
  'schedule',
  'automation_id',
  'task_id',
  'run_id',
  'event_id',
  'entry_id',
]

function parametersOf(url: string): readonly string[] {
  return [...url.matchAll(/:(\w+)|\*/g)].map(([all, name]) => name ?? all)
}

function pathOf(url: string, given: ReadonlyMap<string, string> = samples): string {
  const path = url.replaceAll(/:(\w+)|\*/g, (all, name: string | undefined) => given.get(name ?? all) ?? 'NO-SAMPLE')
  if (/\/files\/(?:upload|link)$/.test(path)) return `${path}?filename=a.txt`
  if (path.endsWith('/changes')) return `${path}?wait=0`
  return path.includes('tasks/next') ? `${path}?timeout=0` : path
}

/** What is deleted here is never there: the samples are needed to the end. */
function samplePath({ method, url }: DeclaredRoute): string {
  return method === 'DELETE' && /automation|agents/.test(url) ? `${pathOf(url)}x` : pathOf(url)
}

async function statusOf(route: DeclaredRoute, headers: Headers, path = samplePath(route)): Promise<number> {
  return (await call(route, headers, path)).status
}

function call({ method, url }: DeclaredRoute, headers: Headers, path: string): Promise<Answer> {
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const body = sampleBody(method, url)
  return app.call(method, path, { headers, ...(hasBody ? { body } : {}) })
}

/** Refusals of the old interface name the request and the time. */
function steady({ text }: Answer): string {
  return text.replaceAll(/"(?:request_id|timestamp)":"[^"]*"/g, '')
}

/** What a caller gets who may come in: anything but a refusal of his person. */
const IN = 'in'
const seen = (status: number): number | typeof IN => (status === 401 || status === 403 ? status : IN)

const STRANGERS: Readonly<Record<string, Headers>> = {
  anonymous: {},
  'empty token': { 'x-client-token': '', 'x-worker-token': '', authorization: 'Bearer ' },
  'wrong token': { ...client('wrong'), ...worker('wrong') },
  'wrong bearer': { authorization: 'Bearer wrong' },
  'a right token with more': { ...client(`${CLIENT_TOKENS.admin}x`), ...worker(`${WORKER_TOKENS.own}x`) },
  'half of a right token': { ...client('token-ad'), ...worker('token-ow') },
}

async function rowOf(
  route: DeclaredRoute,
  callers: Readonly<Record<string, Headers>>,
): Promise<Record<string, unknown>> {
  const cells = await Promise.all(
    Object.entries(callers).map(async ([name, headers]) => [name, seen(await statusOf(route, headers))] as const),
  )
  return Object.fromEntries(cells)
}
const all = (names: Readonly<Record<string, unknown>>, value: unknown): Record<string, unknown> =>
  Object.fromEntries(Object.keys(names).map((name) => [name, value]))

const ofAccess = (...wanted: readonly DeclaredRoute['access'][]): readonly DeclaredRoute[] =>
  routes.filter(({ access }) => wanted.includes(access))
const nameOf = ({ method, url, access }: DeclaredRoute): string => `${method} ${url} (${access})`

describe('every route against everybody', () => {
  test('[H-03] every parameter of every route has a sample here', () => {
    expect(routes.length).toBeGreaterThan(50)
    for (const route of routes) {
      const missing = parametersOf(route.url).filter((name) => !samples.has(name))
      expect({ route: nameOf(route), missing }).toEqual({ route: nameOf(route), missing: [] })
    }
  })

  test('[H-03] routes of clients: roles from the one that is needed upwards, and nobody else', async () => {
    const workers = {
      worker: worker(WORKER_TOKENS.own),
      'global worker token': worker(WORKER_TOKENS.global, FREE_WORKER),
      "a worker's token as a client's": client(WORKER_TOKENS.own),
      "a worker's token as a bearer": { authorization: `Bearer ${WORKER_TOKENS.global}` },
    }
    for (const route of ofAccess(...CLIENT_ROLES)) {
      const { access } = route
      const roles = Object.fromEntries(CLIENT_ROLES.map((role) => [role, client(CLIENT_TOKENS[role])]))
      const needed = CLIENT_ROLES.find((role) => role === access) ?? 'admin'
      expect({ route: nameOf(route), ...(await rowOf(route, { ...STRANGERS, ...workers, ...roles })) }).toEqual({
        route: nameOf(route),
        ...all(STRANGERS, 401),
        ...all(workers, 401),
        ...Object.fromEntries(CLIENT_ROLES.map((role) => [role, isAllowed(role, needed) ? IN : 403])),
      })
    }
  })

  test('[H-03] routes of workers: the worker itself, and neither others, nor the global token, nor any client', async () => {
    // A refresh token is its own proof and comes in the body.
    const isProvenByBody = ({ url }: DeclaredRoute): boolean => url.endsWith('/auth/token/refresh')
    for (const route of ofAccess('worker').filter((one) => !isProvenByBody(one))) {
      const others = {
        'other worker': worker(WORKER_TOKENS.second),
        'global worker token': worker(WORKER_TOKENS.global),
        ...Object.fromEntries(CLIENT_ROLES.map((role) => [role, client(CLIENT_TOKENS[role])])),
        "a client's token as a worker's": worker(CLIENT_TOKENS.admin),
        "a client's token as a bearer": { authorization: `Bearer ${CLIENT_TOKENS.admin}`, 'x-worker-id': WORKER },
      }
      const row = await rowOf(route, { ...STRANGERS, ...others, worker: worker(WORKER_TOKENS.own) })
      const expected = { ...all(STRANGERS, 401), ...all(others, 401), worker: IN }
      expect({ route: nameOf(route), ...row }).toEqual({ route: nameOf(route), ...expected })
      const free = pathOf(route.url, new Map([...samples, ['worker_id', FREE_WORKER], ['workerId', FREE_WORKER]]))
      expect(seen(await statusOf(route, worker(WORKER_TOKENS.global, FREE_WORKER), free))).toBe(IN)
    }
  })

  test('[H-03] routes that need a signed link or the owner: nobody without either', async () => {
    for (const route of ofAccess('capability')) {
      const row = await rowOf(route, { ...STRANGERS, worker: worker(WORKER_TOKENS.own) })
      expect({ route: nameOf(route), ...row }).toEqual({
        route: nameOf(route),
        ...all(STRANGERS, 401),
        worker: 401,
      })
      const forged = `${pathOf(route.url)}?capability=forged`
      expect([401, 403]).toContain(await statusOf(route, {}, forged))
    }
  })

  test('[H-03] [J-17] public routes are the ones that are meant to be, and none of them is for debugging', async () => {
    for (const route of ofAccess('public')) {
      // The dashboard asks for its session here, and is told that there is none.
      const expected = nameOf(route).startsWith('GET /dashboard/session') ? 401 : IN
      expect({ route: nameOf(route), seen: seen(await statusOf(route, {})) }).toEqual({
        route: nameOf(route),
        seen: expected,
      })
    }
    const open = [...new Set(ofAccess('public').map(({ url }) => url.split('/').slice(0, 3).join('/')))].toSorted()
    expect(open).toEqual([
      '/',
      '/.well-known/oauth-protected-resource',
      '/_public/docs',
      '/_public/hooks',
      '/_public/live',
      '/_public/metrics',
      '/_public/openapi.json',
      '/_public/ready',
      '/_public/status',
      '/agents/auth',
      '/dashboard',
      '/dashboard/*',
      '/dashboard/session',
      '/health',
      '/health/live',
      '/health/ready',
      '/metrics',
    ])
    expect(routes.filter(({ url }) => /debug|flush/.test(url))).toEqual([])
    for (const path of ['/_public/debug/flush_db', '/debug', '/_public/metrics/../debug/flush_db', '/_public/debug']) {
      expect((await app.call('POST', path, { body: {} })).status).toBe(404)
    }
  })
})

describe('every route with an id against another tenant', () => {
  test('[H-05] what belongs to another client is answered like what does not exist: 404, and the same text', async () => {
    const missing = new Map(samples)
    for (const name of PRIVATE) missing.set(name, (samples.get(name) ?? '').replaceAll(/[\da-f](?=.{0,3}$)/gi, '0'))
    let asked = 0
    for (const route of routes) {
      const ids = parametersOf(route.url).filter((name) => PRIVATE.includes(name))
      if (ids.length === 0 || route.access === 'worker') continue
      asked += 1
      for (const id of ids) expect(missing.get(id)).not.toBe(samples.get(id))
      const foreign = await call(route, client(CLIENT_TOKENS.other), pathOf(route.url))
      const nowhere = await call(route, client(CLIENT_TOKENS.other), pathOf(route.url, missing))
      // Pages for people, and files, come with a link and never with a token.
      const isFile = route.url.startsWith('/_public/files/')
      const isPage = route.access === 'capability' && (route.method === 'GET' || isFile)
      const status = isPage ? 401 : route.access === 'admin' ? 403 : 404
      expect({ route: nameOf(route), status: foreign.status }).toEqual({ route: nameOf(route), status })
      expect({ route: nameOf(route), text: steady(foreign) }).toEqual({ route: nameOf(route), text: steady(nowhere) })
    }
    expect(asked).toBeGreaterThan(10)
  })

  test('[H-05] the samples are real: their owner finds them, and so does an admin; lists of others are empty', async () => {
    const paths = ['/jobs/:job_id', '/webhooks/deliveries/:delivery_id', '/webhooks/endpoints/:endpoint_id']
    const standing = [
      '/schedules/:schedule',
      '/automations/:automation_id',
      '/runs/:run_id',
      '/automations/events/:event_id',
      '/audit/:entry_id',
    ]
    for (const path of [...paths, ...standing]) {
      const found = pathOf(`/api/v1${path}`)
      for (const token of [CLIENT_TOKENS.client, CLIENT_TOKENS.admin]) {
        const { status } = await app.call('GET', found, { headers: client(token) })
        expect({ found, token, status }).toEqual({ found, token, status: 200 })
      }
      const list = await app.call('GET', found.slice(0, found.lastIndexOf('/')), {
        headers: client(CLIENT_TOKENS.other),
      })
      expect(list.status).toBe(200)
      for (const id of PRIVATE) expect(list.text).not.toContain(samples.get(id))
    }
  })
})
