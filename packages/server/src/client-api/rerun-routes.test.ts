import { blueprint } from '@impresario/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'

const shop = blueprint('shop', { start: 'count' }, (state) => ({
  count: state.handler((context, actions) => {
    return actions.transitionTo('price', { counted: Number(context.initialData['amount'] ?? 0) * 2 })
  }),
  price: state.handler((context, actions) => {
    const { counted } = context.stateHistory as { counted: number }
    return actions.transitionTo('sum', { price: counted + 1 })
  }),
  sum: state.handler((_context, actions) => actions.dispatchParallel([], { into: 'join' })),
  join: state.aggregator((_context, actions) => actions.transitionTo('done')),
  done: state.end(),
}))

/** Its second state reads what a task of the first one gave, not the state history. */
const film = blueprint('film', { start: 'render' }, (state) => ({
  render: state.handler((_context, actions) =>
    actions.runBlueprint(shop, { initialData: { amount: 3 }, transitions: { success: 'tell' } }),
  ),
  tell: state.handler((context, actions) =>
    actions.transitionTo('done', { seen: context.outcomeOf(shop)?.status ?? 'nothing' }),
  ),
  done: state.end(),
}))

let app: TenantServer
let jobId = ''
beforeAll(async () => {
  app = await startTenantServer({ blueprints: [shop, film] })
  jobId = await app.jobIn('alpha', 'shop', 'finished', { initial_data: { amount: 4 } })
})
afterAll(() => app.close())

const rerun = (body: object, id = jobId, headers: Readonly<Record<string, string>> = {}) =>
  app.as('alpha', 'POST', `/api/v1/jobs/${id}/rerun`, body, headers)

const ended = async (id: string): Promise<Readonly<Record<string, unknown>>> =>
  (await app.as('alpha', 'GET', `/api/v1/jobs/${id}?wait=20&until=end`)).body

describe('a job is run again', () => {
  test('[M-02] from the beginning, with the same input or another', async () => {
    const same = await rerun({})
    expect(same.status).toBe(202)
    expect(await ended(same.body.job_id)).toMatchObject({ status: 'finished', state_history: { counted: 8, price: 9 } })
    const other = await rerun({ initial_data: { amount: 1 } })
    expect(await ended(other.body.job_id)).toMatchObject({ state_history: { counted: 2, price: 3 } })
  })

  test('[M-02] from a state on, with what the states before had written, or with other data', async () => {
    const same = await rerun({ from_state: 'price' })
    expect(await ended(same.body.job_id)).toMatchObject({ status: 'finished', state_history: { counted: 8, price: 9 } })
    const other = await rerun({ from_state: 'price', state_history: { counted: 100 } })
    expect(await ended(other.body.job_id)).toMatchObject({ state_history: { counted: 100, price: 101 } })
    const { text } = await app.as('alpha', 'GET', `/api/v1/jobs/${other.body.job_id}/history`)
    expect(text).toContain(`again from state price of ${jobId}`)
    expect(await ended(jobId)).toMatchObject({ state_history: { counted: 8, price: 9 } })
  })

  test('[M-02] [B-14] from a state of an ended job, with the results of the calls before it', async () => {
    const first = await app.jobIn('alpha', 'film', 'finished')
    const again = await rerun({ from_state: 'tell' }, first)
    expect(await ended(again.body.job_id)).toMatchObject({ status: 'finished', state_history: { seen: 'success' } })
  })

  test('[M-02] what cannot be is refused, and says why', async () => {
    const refused = async (body: object): Promise<unknown> => (await rerun(body)).body['error']
    expect(await refused({ from_state: 'join' })).toContain(
      'which is of the kind aggregator. Choose one of: count, price, sum',
    )
    expect(await refused({ from_state: 'nowhere' })).toContain('which it does not have')
    expect(await refused({ state_history: {} })).toContain('"state_history" needs "from_state"')
    const huge = { text: Array.from({ length: 8 }, () => 'x'.repeat(130_000)) }
    expect((await rerun({ from_state: 'price', state_history: huge })).body['code']).toBe('LIMIT_EXCEEDED')
    const foreign = await app.as('beta', 'POST', `/api/v1/jobs/${jobId}/rerun`, {})
    expect([foreign.status, foreign.body['code']]).toEqual([404, 'JOB_NOT_FOUND'])
    expect((await app.as('viewer', 'POST', `/api/v1/jobs/${jobId}/rerun`, {})).status).toBe(403)
  })

  test('[A-02] [M-02] with a key once; the same key for something else is refused', async () => {
    const key = { 'idempotency-key': 'again-1' }
    const [first, second] = [
      await rerun({ from_state: 'price' }, jobId, key),
      await rerun({ from_state: 'price' }, jobId, key),
    ]
    expect(second.body.job_id).toBe(first.body.job_id)
    const other = await rerun({ from_state: 'count' }, jobId, key)
    expect(other.body['code']).toBe('IDEMPOTENCY_KEY_REUSED')
  })

  test('[M-02] by the client, over HTTP and in the same process', async () => {
    const own = app.server.client({ id: 'alpha' })
    const again = await own.job(jobId).rerun({ from: 'price', stateHistory: { counted: 1 } })
    expect((await again.wait()).stateHistory).toEqual({ counted: 1, price: 2 })
  })
})
