import { blueprint } from '@impresario/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'
import { dataIn, fieldsOf, formProblems } from './approval-form.ts'

const FORM = {
  type: 'object',
  properties: {
    amount: { type: 'integer', minimum: 1, maximum: 500, title: 'Amount <€>' },
    level: { enum: ['low', 'high', 3] },
    contact: { type: 'string', format: 'email', description: 'Who is told.' },
    express: { type: 'boolean' },
    tags: { type: 'array', items: { enum: ['a', 'b'] } },
    place: { type: 'object', properties: { city: { type: ['string', 'null'], minLength: 2 } }, required: ['city'] },
    more: {},
  },
  required: ['amount', 'level'],
  additionalProperties: false,
} as const

const pay = blueprint('pay', { start: 'wait' }, (state) => ({
  wait: state.handler((_context, actions) =>
    actions.awaitHumanApproval({
      message: 'How much?',
      transitions: { approved: 'done', send_back: 'failed', rejected: 'failed' },
      form: FORM,
      formFor: ['approved'],
    }),
  ),
  done: state.end(),
  failed: state.end(),
}))
const zod = blueprint('zod', { start: 'wait' }, (state) => ({
  wait: state.handler((_context, actions) =>
    actions.awaitHumanApproval({
      message: 'Which colour?',
      transitions: { approved: 'done', rejected: 'done' },
      form: z.object({ colour: z.enum(['red', 'blue']), shade: z.number().nullable() }),
    }),
  ),
  done: state.end(),
}))
const wrong = blueprint('wrong', { start: 'wait', handlerAttemptsMax: 1 }, (state) => ({
  wait: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'How?', transitions: { approved: 'done' }, form: { type: 'string' } }),
  ),
  done: state.end(),
}))

let app: TenantServer
beforeEach(async () => {
  app = await startTenantServer({ blueprints: [pay, zod, wrong] })
})
afterEach(() => app.close())

const decide = (jobId: string, body: object) => app.as('alpha', 'POST', `/_public/webhooks/approval/${jobId}`, body)
const ended = (jobId: string) => app.as('alpha', 'GET', `/api/v1/jobs/${jobId}?wait=20&until=end`)

test('[B-04] [M-02] a question can ask for data, which is checked and kept with the decision', async () => {
  const jobId = await app.jobIn('alpha', 'pay', 'waiting_for_human')
  const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}`)
  expect(body['approval']).toMatchObject({ form: FORM, form_for: ['approved'] })
  expect(await decide(jobId, { decision: 'approved' })).toMatchObject({
    status: 422,
    body: { code: 'INPUT_REFUSED', error: 'The form is not complete: amount is needed. There are 2 such problems.' },
  })
  const refused = await decide(jobId, { decision: 'approved', data: { amount: 501, level: 'no', other: 1 } })
  expect(refused.body['problems']).toEqual([
    { field: 'data.other', message: 'is not asked for' },
    { field: 'data.amount', message: 'must be at most 500' },
    { field: 'data.level', message: 'must be one of low, high, 3' },
  ])
  expect(
    (await decide(jobId, { decision: 'approved', data: { amount: 1, level: 3, more: 'x'.repeat(70_000) } })).status,
  ).toBe(422)
  const data = { amount: 12, level: 3, place: { city: 'Riga' } }
  expect((await decide(jobId, { decision: 'approved', data })).status).toBe(200)
  expect((await ended(jobId)).body).toMatchObject({ status: 'finished', state_history: { decision: { data } } })
  // The same once more is answered as the first time; other data is another decision.
  expect((await decide(jobId, { decision: 'approved', data })).status).toBe(200)
  expect((await decide(jobId, { decision: 'approved', data: { ...data, amount: 13 } })).status).toBe(409)
})

test('[B-04] who rejects need not fill in anything, and a question without a form takes no data', async () => {
  const jobId = await app.jobIn('alpha', 'pay', 'waiting_for_human')
  expect((await decide(jobId, { decision: 'rejected' })).status).toBe(200)
  const { body } = await ended(jobId)
  expect(body['state_history']).toEqual({ decision: { decision: 'rejected', by: 'alpha', comment: null } })
  await app.close()
  app = await startTenantServer()
  const plain = await app.jobIn('alpha', 'ask', 'waiting_for_human')
  expect(await decide(plain, { decision: 'approved', data: { a: 1 } })).toMatchObject({ status: 422 })
  expect((await decide(plain, { decision: 'approved', data: null })).status).toBe(200)
})

test('[B-04] a form may be a schema of zod; one that is no schema of an object fails the handler', async () => {
  const client = app.server.client({ id: 'alpha' })
  const jobId = await app.jobIn('alpha', 'zod', 'waiting_for_human')
  const { form, formFor } = await client.approvals.get(jobId)
  expect({ form, formFor }).toMatchObject({
    form: { type: 'object', properties: { colour: { enum: ['red', 'blue'] } } },
    formFor: ['approved'],
  })
  await expect(client.job(jobId).approve('approved', { data: { colour: 'green', shade: 1 } })).rejects.toMatchObject({
    code: 'INPUT_REFUSED',
  })
  await client.job(jobId).approve('approved', { data: { colour: 'red', shade: null } })
  expect(await client.job(jobId).wait()).toMatchObject({ status: 'finished' })
  const broken = await app.jobIn('alpha', 'wrong', 'quarantined')
  const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${broken}`)
  expect(body['error_message']).toContain('`form` that is no schema of an object')
})

test('[B-04] [M-02] [M-07] the page for people has a field for each property and says what is wrong, in their language', async () => {
  const jobId = await app.jobIn('alpha', 'pay', 'waiting_for_human')
  const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}/approval`)
  const path = String(body['url']).slice(app.address.length)
  const page = await app.call('GET', path)
  expect(page.text).toContain('<label for="data/amount">Amount &lt;€&gt; *</label>')
  expect(page.text).toContain('type="number" id="data/amount" name="data/amount" required step="1" min="1" max="500"')
  expect(page.text).toContain('type="email" id="data/contact"')
  expect(page.text).toContain('<option value="&quot;low&quot;">low</option>')
  expect(page.text).toContain('id="data/place/city"')
  expect(page.text).toContain('formnovalidate name="decision" value="rejected"')
  expect(page.text).not.toContain('formnovalidate name="decision" value="approved"')
  const capability = new URL(String(body['url'])).searchParams.get('capability') ?? ''
  const send = (fields: Readonly<Record<string, string>>) =>
    app.call('POST', `/_public/webhooks/approval/${jobId}`, {
      body: new URLSearchParams({ capability, ...fields }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'accept-language': 'es' },
    })
  const refused = await send({ decision: 'approved', comment: '<hm>', 'data/amount': '900', 'data/contact': 'nobody' })
  expect(refused.status).toBe(422)
  expect(refused.text).toContain('Corrija lo marcado')
  expect(refused.text).toContain('Como máximo 500.')
  expect(refused.text).toContain('Es necesario.')
  expect(refused.text).toContain('value="nobody"')
  expect(refused.text).toContain('&lt;hm&gt;</textarea>')
  expect(refused.text).toContain('aria-describedby="data/amount-wrong" aria-invalid="true"')
  const sent = await send({
    decision: 'approved',
    'data/amount': '90',
    'data/level': '"high"',
    'data/express': 'on',
    'data/tags#1': 'on',
    'data/place/city': 'Riga',
    'data/more': '[1]',
  })
  expect(sent.status).toBe(200)
  const { body: job } = await ended(jobId)
  expect(job['state_history']).toMatchObject({
    decision: {
      data: { amount: 90, level: 'high', express: true, tags: ['b'], place: { city: 'Riga' }, more: [1] },
    },
  })
})

test('[B-04] what a browser sends becomes data, and what cannot be read is refused', () => {
  const fields = fieldsOf(FORM)
  const read = (sent: Readonly<Record<string, string>>) => dataIn(fields, sent)
  expect(read({})).toEqual({ express: false })
  expect(read({ 'data/amount': '1,5', 'data/more': '{' })).toEqual({ amount: 1.5, more: '{', express: false })
  const kinds = formProblems(FORM, read({ 'data/amount': 'x', 'data/level': 'z', 'data/place/city': 'R' }))
  expect(kinds.map(({ field, kind }) => `${field} ${kind}`)).toEqual([
    'amount integer',
    'level choice',
    'place.city longer',
  ])
  expect(
    dataIn(fieldsOf({ type: 'object', properties: { 'a/b~c': { type: 'string' } } }), { 'data/a~1b~0c': 'x' }),
  ).toEqual({
    'a/b~c': 'x',
  })
})

test('[C-10] an address of a person has a bound, and is looked through once', () => {
  const problems = (contact: string) => formProblems(FORM, { amount: 1, level: 'low', contact }).map(({ kind }) => kind)
  expect(problems(`a@${'b'.repeat(247)}.test`)).toEqual([])
  expect(problems(`a@${'b'.repeat(248)}.test`)).toEqual(['format'])
  expect(problems(`a@${'.'.repeat(60_000)}@`)).toEqual(['format'])
})
