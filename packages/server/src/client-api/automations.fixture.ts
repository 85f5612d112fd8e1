import { expect, vi } from 'vitest'
import type { TenantServer } from '../tenants.fixture.ts'

const PIPELINE = [
  { id: 'make', uses: 'transform', with: { value: { greeting: 'Hello ${params.name}' } }, save_as: 'made' },
  { id: 'tell', uses: 'log', with: { message: '${steps.made.greeting}' } },
]
export const AUTOMATION = { title: 'Greet', params: { name: 'Ada' }, pipeline: PIPELINE }

/** An automation of the client alpha; gives its id. */
export async function createAutomation(app: TenantServer, more: object = {}): Promise<string> {
  const { status, body, text } = await app.as('alpha', 'POST', '/api/v1/automations', { ...AUTOMATION, ...more })
  expect({ status, text }).toMatchObject({ status: 201 })
  return String(body['id'])
}

/** A run of the client alpha, once it has ended. */
export function endedRun(app: TenantServer, runId: string): Promise<Readonly<Record<string, unknown>>> {
  return vi.waitFor(async () => {
    const { body } = await app.as('alpha', 'GET', `/api/v1/runs/${runId}`)
    expect(body['ended_at']).toEqual(expect.any(Number))
    return body
  }, 60_000)
}
