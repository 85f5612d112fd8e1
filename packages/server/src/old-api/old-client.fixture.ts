import { expect, vi } from 'vitest'
import { TENANTS } from '../tenants.fixture.ts'
import type { Tenant, TenantServer } from '../tenants.fixture.ts'
import type { Answer } from '../server.fixture.ts'

const PAYLOAD = {
  params: { name: 'Ada', size: 9_007_199_254_740_991 },
  pipeline: [
    { id: 'make', uses: 'transform', with: { value: { greeting: 'Hello ${params.name}' } }, save_as: 'made' },
    { id: 'skip', uses: 'log', with: { message: 'no' }, if: "params.name == 'Bob'" },
    { uses: 'log', with: { message: '${steps.made.greeting}' } },
  ],
}
export const TASK = {
  title: 'Greet',
  description: 'Says hello',
  schedule_kind: 'cron',
  schedule_expr: '0 9 * * 1-5',
  timezone: 'Europe/Chisinau',
  payload: PAYLOAD,
}
export const TIME: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/)
export const UUID: unknown = expect.stringMatching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)

export interface OldClient {
  call(method: string, path: string, body?: unknown): Promise<Answer>
  /** A task; gives its id. */
  create(more?: object): Promise<string>
  /** The newest run of a task, once it has ended. */
  ended(taskId: string): Promise<Answer['body']>
}

/** A client of the old automation system, as it is: a bearer token, and the paths that it knows. */
export function oldClient(app: TenantServer, token: Tenant | { readonly token: string }): OldClient {
  const bearer = typeof token === 'string' ? TENANTS[token] : token.token
  const call: OldClient['call'] = (method, path, body) =>
    app.call(method, path, { body, headers: { authorization: `Bearer ${bearer}` } })
  return {
    call,
    create: async (more = {}) => {
      const { status, body, text } = await call('POST', '/tasks/', { ...TASK, ...more })
      expect({ status, text }).toMatchObject({ status: 201 })
      return String(body['id'])
    },
    ended: (taskId) =>
      vi.waitFor(async () => {
        const { body } = await call('GET', `/runs/task/${taskId}/latest`)
        expect(body['finished_at']).toEqual(TIME)
        return body
      }, 60_000),
  }
}
