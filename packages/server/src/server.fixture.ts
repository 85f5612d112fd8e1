import { blueprint } from '@impresario/core'
import { newStorageUrl } from '../../../test/servers/storage-ground.ts'
import { testStorage } from '../../../test/servers/test-storage.ts'
import { SILENT } from './runtime/log.ts'
import { createServer } from './server.ts'
import type { Server, ServerOptions } from './server.ts'

/** Blueprints for the tests of the HTTP face: one task, a fan-out, a person, a task that may fail. */
export const echo = blueprint('echo', { start: 'ask', endpoint: '/echo' }, (state) => ({
  ask: state.handler((context, actions) =>
    actions.dispatchTask({
      type: 'echo',
      params: { given: context.initialData },
      transitions: { success: 'done', later: 'done' },
    }),
  ),
  done: state.end(),
}))

const fan = blueprint('fan', { start: 'spread' }, (state) => ({
  spread: state.handler((_context, actions) => {
    actions.dispatchTask({ type: 'echo', params: { part: 1 }, transitions: { success: 'gather' } })
    return actions.dispatchTask({ type: 'echo', params: { part: 2 }, transitions: { success: 'gather' } })
  }),
  gather: state.aggregator((context, actions) =>
    actions.transitionTo('done', { parts: Object.keys(context.aggregationResults).length }),
  ),
  done: state.end(),
}))

export const ask = blueprint('ask', { start: 'wait' }, (state) => ({
  wait: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Go on?', transitions: { approved: 'done', rejected: 'failed' } }),
  ),
  done: state.end(),
  failed: state.end(),
}))

const flaky = blueprint('flaky', { start: 'ask', backoffMs: 1 }, (state) => ({
  ask: state.handler((_context, actions) => actions.dispatchTask({ type: 'echo', transitions: { success: 'done' } })),
  done: state.end(),
}))

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Body
  readonly text: string
}
/** What came back, to be compared; nothing here believes in its shape. */
type Body = Readonly<Record<string, unknown>> & { readonly job_id: string; readonly task_id: string }

interface Call {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal?: AbortSignal
}

export interface TestServer {
  readonly server: Server
  readonly address: string
  call(method: string, path: string, call?: Call): Promise<Answer>
  /** As the client. */
  client(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>
  /** As a worker. */
  worker(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>
  register(workerId: string, more?: object): Promise<Answer>
  createJob(name: string, more?: object): Promise<string>
  poll(workerId: string, timeout?: number): Promise<Answer>
  ended(jobId: string): Promise<Answer>
}

export const CLIENT_TOKEN = 'client-of-the-tests'
export const WORKER_TOKEN = 'worker-of-the-tests'

export async function startTestServer(options: ServerOptions = {}): Promise<TestServer> {
  const { clock } = options
  const server = createServer({
    blueprints: [echo, fan, ask, flaky],
    log: SILENT,
    // The storage goes by the time of the test too.
    ...(clock === undefined ? {} : { storage: testStorage({ now: () => clock.now() }) }),
    ...options,
    settings: {
      storageUrl: newStorageUrl(),
      apiHost: '127.0.0.1',
      apiPort: 0,
      clientToken: CLIENT_TOKEN,
      workerToken: WORKER_TOKEN,
      ...options.settings,
    },
  })
  const { address } = await server.start()
  const call = (method: string, path: string, given: Call = {}): Promise<Answer> =>
    request(`${address}${path}`, method, given)
  const client: TestServer['client'] = (method, path, body, headers = {}) =>
    call(method, path, { body, headers: { 'x-client-token': CLIENT_TOKEN, ...headers } })
  const worker: TestServer['worker'] = (method, path, body, headers = {}) =>
    call(method, path, { body, headers: { 'x-worker-token': WORKER_TOKEN, ...headers } })
  return {
    server,
    address,
    call,
    client,
    worker,
    register: (workerId, more = {}) =>
      worker('POST', '/_worker/workers/register', {
        worker_id: workerId,
        supported_skills: ['echo'],
        resources: { max_concurrent_tasks: 1_000 },
        ...more,
      }),
    createJob: async (name, more = {}) => {
      const { body } = await client('POST', '/api/v1/jobs', { blueprint: name, ...more })
      return body.job_id
    },
    poll: (workerId, timeout = 10) => worker('GET', `/_worker/workers/${workerId}/tasks/next?timeout=${timeout}`),
    ended: (jobId) => client('GET', `/api/v1/jobs/${jobId}?wait=20&until=end`),
  }
}

async function request(url: string, method: string, { headers, body, signal }: Call): Promise<Answer> {
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(url, {
    method,
    headers: { ...(text === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(text === undefined ? {} : { body: text }),
    ...(signal === undefined ? {} : { signal }),
  })
  const answered = await response.text()
  return { status: response.status, headers: response.headers, text: answered, body: parsed(answered) }
}

function parsed(text: string): Body {
  try {
    return JSON.parse(text) as Body
  } catch {
    return {} as Body
  }
}
