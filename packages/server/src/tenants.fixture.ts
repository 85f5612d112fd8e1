import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blueprint } from '@impresario/core'
import { expect } from 'vitest'
import { z } from 'zod'
import { echo, startTestServer } from './server.fixture.ts'
import type { Answer, TestServer } from './server.fixture.ts'
import type { ServerOptions } from './server.ts'

/** Two clients who must not see each other, somebody who only reads, and somebody who may do everything. */
export const TENANTS = {
  alpha: 'token-of-alpha-4d1f',
  beta: 'token-of-beta-77a0',
  viewer: 'token-of-viewer-0c3e',
  admin: 'token-of-admin-91b2',
} as const
export type Tenant = keyof typeof TENANTS

const ask = blueprint('ask', { start: 'wait' }, (state) => ({
  wait: state.handler((_context, actions) =>
    actions.awaitHumanApproval({
      message: 'Pay <b>100 €</b> & go on?',
      transitions: { approved: 'done', send_back: 'again', rejected: 'failed', expired: 'failed' },
      expires: '1h',
    }),
  ),
  again: state.handler((_context, actions) => actions.transitionTo('wait')),
  done: state.end(),
  failed: state.end(),
}))

/** Falls over until its data says that it was mended. */
const broken = blueprint(
  'broken',
  {
    start: 'fall',
    handlerAttemptsMax: 1,
    input: z.looseObject({ mended: z.boolean().optional(), weight: z.number().max(10).optional() }),
  },
  (state) => ({
    fall: state.handler((context, actions) => {
      if (context.initialData.mended !== true) throw new Error('the handler fell over')
      return actions.transitionTo('done')
    }),
    done: state.end(),
  }),
)

/** The same path as `echo`, in another version of the API. */
const second = blueprint('second', { start: 'done', endpoint: '/echo', apiVersion: 'v2' }, (state) => ({
  done: state.end(),
}))

export interface TenantServer extends TestServer {
  readonly settings: NonNullable<ServerOptions['settings']>
  as(
    tenant: Tenant,
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer>
  /** A job of this client, once it is in this status. */
  jobIn(tenant: Tenant, name: string, status: string, more?: object): Promise<string>
  close(): Promise<void>
}

export async function startTenantServer(options: ServerOptions = {}): Promise<TenantServer> {
  const directory = await mkdtemp(join(tmpdir(), 'impresario-tenants-'))
  const clientsConfigPath = join(directory, 'clients.toml')
  const tables = Object.entries(TENANTS).map(([name, token]) => {
    const role = name === 'viewer' || name === 'admin' ? `role = "${name}"\n` : ''
    return `[${name}]\ntoken = "${token}"\n${role}`
  })
  await writeFile(clientsConfigPath, tables.join('\n'))
  const { clientToken: _, ...given } = options.settings ?? {}
  // Shared storages have no directory of their own for files.
  const settings = { clientToken: '', clientsConfigPath, filesDir: join(directory, 'files'), ...given }
  const app = await startTestServer({
    blueprints: [echo, ask, broken, second],
    ...options,
    settings,
  })
  const as: TenantServer['as'] = (tenant, method, path, body, headers = {}) =>
    app.call(method, path, { body, headers: { 'x-client-token': TENANTS[tenant], ...headers } })
  const jobIn: TenantServer['jobIn'] = async (tenant, name, status, more = {}) => {
    const { body } = await as(tenant, 'POST', '/api/v1/jobs', { blueprint: name, ...more })
    for (let version = 0; ; version += 1) {
      const found = await as(tenant, 'GET', `/api/v1/jobs/${body.job_id}?wait=20&version=${version}`)
      if (found.body['status'] === status) return body.job_id
    }
  }
  const close = async (): Promise<void> => {
    await app.server.stop()
    await rm(directory, { recursive: true, force: true })
  }
  return { ...app, settings, as, jobIn, close }
}

/** The answer as a list. */
export function listIn(answer: Answer): readonly Readonly<Record<string, unknown>>[] {
  return JSON.parse(answer.text) as readonly Readonly<Record<string, unknown>>[]
}

/** For comparisons: what they match is of no known type. */
export const SOME_TEXT: unknown = expect.any(String)
export const SOME_NUMBER: unknown = expect.any(Number)
export function containing(text: string): unknown {
  return expect.stringContaining(text)
}
