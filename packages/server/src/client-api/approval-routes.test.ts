import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createClock } from '../runtime/clock.ts'
import { startTenantServer } from '../tenants.fixture.ts'
import type { TenantServer } from '../tenants.fixture.ts'

let app: TenantServer
/** The clock of the server, which a test may put forward. */
let aheadMs = 0

beforeEach(async () => {
  aheadMs = 0
  const real = createClock()
  const clock = { now: () => real.now() + aheadMs, sleep: (ms: number, signal: AbortSignal) => real.sleep(ms, signal) }
  app = await startTenantServer({ clock })
})
afterEach(() => app.close())

interface Question {
  readonly url: string
  readonly decision_urls: Readonly<Record<string, string>>
}

async function question(jobId: string): Promise<Question> {
  const { text } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}/approval`)
  return JSON.parse(text) as Question
}

function pathOf(url: string | undefined): string {
  return (url ?? '').slice(app.address.length)
}

function form(fields: Readonly<Record<string, string>>): { body: string; headers: Record<string, string> } {
  return {
    body: new URLSearchParams(fields).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  }
}

function capabilityIn(url: string | undefined): string {
  return new URL(url ?? '').searchParams.get('capability') ?? ''
}

describe('what a job asks', () => {
  test('[B-04] [H-01] a job that waits for a person says what it asks, to its owner and admins only', async () => {
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}`)
    expect(body['approval']).toMatchObject({
      message: 'Pay <b>100 €</b> & go on?',
      decisions: ['approved', 'send_back', 'rejected'],
      reminders: 0,
    })
    const asked = await app.as('admin', 'GET', `/api/v1/jobs/${jobId}/approval`)
    expect(asked).toMatchObject({ status: 200, body: { job_id: jobId, blueprint_name: 'ask' } })
    expect(asked.headers.get('cache-control')).toBe('no-store')
    expect((await app.as('beta', 'GET', `/api/v1/jobs/${jobId}/approval`)).status).toBe(404)
    expect((await app.as('viewer', 'GET', `/api/v1/jobs/${jobId}/approval`)).status).toBe(403)
    const other = await app.jobIn('alpha', 'broken', 'quarantined')
    expect(await app.as('alpha', 'GET', `/api/v1/jobs/${other}/approval`)).toMatchObject({
      status: 409,
      body: { code: 'NOT_WAITING' },
    })
  })

  test('[H-01] links begin with the address that is configured for people', async () => {
    await app.close()
    app = await startTenantServer({ settings: { publicUrl: 'https://jobs.example/' } })
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    expect((await question(jobId)).url).toMatch(/^https:\/\/jobs\.example\/_public\/webhooks\/approval\//)
  })
})

describe('deciding with a token', () => {
  test('[H-05] only the owner and admins decide', async () => {
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const path = `/_public/webhooks/approval/${jobId}`
    expect((await app.as('beta', 'POST', path, { decision: 'approved' })).status).toBe(404)
    expect((await app.as('viewer', 'POST', path, { decision: 'approved' })).status).toBe(403)
    expect((await app.call('POST', path, { body: { decision: 'approved' } })).status).toBe(401)
    expect(await app.as('alpha', 'POST', path, { decision: 'expired' })).toMatchObject({
      status: 400,
      body: { error: "Invalid decision 'expired' for this job" },
    })
    expect((await app.as('admin', 'POST', path, { decision: 'approved', comment: 'fine' })).status).toBe(200)
    const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}?wait=20&until=end`)
    expect(body).toMatchObject({ status: 'finished', state_history: { decision: { by: 'admin', comment: 'fine' } } })
  })

  test('[B-04] a decision that names an older question decides nothing', async () => {
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}/approval`)
    const path = `/_public/webhooks/approval/${jobId}`
    const old = { decision: 'approved', visit: body['visit'] }
    expect((await app.as('alpha', 'POST', path, { decision: 'send_back', visit: body['visit'] })).status).toBe(200)
    await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}?wait=20&version=4`)
    expect(await app.as('alpha', 'POST', path, old)).toMatchObject({ status: 409, body: { code: 'STALE_DECISION' } })
  })
})

describe('deciding with a capability', () => {
  test('[H-01] a signed link decides once, without a token, by JSON', async () => {
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const { url } = await question(jobId)
    const decide = (decision: string) => app.call('POST', pathOf(url), { body: { decision } })
    for (let clicks = 0; clicks < 2; clicks += 1) {
      const answer = await decide('approved')
      expect(answer).toMatchObject({ status: 200, body: { status: 'approval_received', job_id: jobId } })
    }
    expect(await decide('rejected')).toMatchObject({ status: 409 })
    const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}?wait=20&until=end`)
    expect(body).toMatchObject({ status: 'finished' })
  })

  test('[H-01] a capability in the body counts as well, for its job and its decision only', async () => {
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const other = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const { decision_urls: urls } = await question(jobId)
    const capability = capabilityIn(urls['rejected'])
    const decide = (id: string, decision: string, given = capability) =>
      app.call('POST', `/_public/webhooks/approval/${id}`, { body: { decision, capability: given } })
    expect(await decide(other, 'rejected')).toMatchObject({ status: 401, body: { code: 'UNAUTHENTICATED' } })
    expect(await decide(jobId, 'approved')).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } })
    const last = capability.at(-1) === 'A' ? 'B' : 'A'
    for (const forged of [`${capability.slice(0, -1)}${last}`, capability.replace('c1.', 'c1.1'), '', 'x', 'c1....']) {
      expect((await decide(jobId, 'rejected', forged)).status).toBe(401)
    }
    expect((await decide(jobId, 'rejected')).status).toBe(200)
  })

  test('[H-01] a link is too old after a week, and when the question ends', async () => {
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const { url } = await question(jobId)
    aheadMs = 3_600_000
    const late = await app.call('POST', pathOf(url), { body: { decision: 'approved' } })
    expect(late).toMatchObject({ status: 401 })
    expect(late.text).toContain('too old')
  })

  test('[H-01] a link to an earlier question does not decide a later one', async () => {
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const { url } = await question(jobId)
    expect((await app.call('POST', pathOf(url), { body: { decision: 'send_back' } })).status).toBe(200)
    for (let version = 1; ; version += 1) {
      const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}?wait=20&version=${version}`)
      if (body['status'] === 'waiting_for_human') break
    }
    expect(await app.call('POST', pathOf(url), { body: { decision: 'approved' } })).toMatchObject({
      status: 409,
      body: { code: 'STALE_DECISION' },
    })
    const page = await app.call('GET', pathOf(url))
    expect(page.status).toBe(409)
    expect(page.text).toContain('no longer open')
  })
})

describe('the page for people', () => {
  test('[H-01] it shows the question and decides nothing by being opened', async () => {
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const { url, decision_urls: urls } = await question(jobId)
    const page = await app.call('GET', pathOf(url))
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.text).toContain('Pay &lt;b&gt;100 €&lt;/b&gt; &amp; go on?')
    expect(page.text).toContain('<button name="decision" value="send_back">Send back</button>')
    expect(page.text).not.toContain('<script')
    expect(page.text).toContain('width=device-width')
    const policy = page.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toContain('unsafe')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.headers.get('cache-control')).toBe('no-store')
    const one = await app.call('GET', pathOf(urls['approved']))
    expect(one.text.match(/<button/g)).toHaveLength(1)
    const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}`)
    expect(body).toMatchObject({ status: 'waiting_for_human' })
  })

  test('[H-01] its form decides, and says so', async () => {
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const capability = capabilityIn((await question(jobId)).url)
    const path = `/_public/webhooks/approval/${jobId}`
    const sent = await app.call('POST', path, form({ decision: 'approved', comment: 'yes, do', capability }))
    expect(sent.status).toBe(200)
    expect(sent.text).toContain('Your decision is recorded')
    const again = await app.call('POST', path, form({ decision: 'approved', capability }))
    expect(again.status).toBe(200)
    expect(again.text).toContain('Your decision is recorded')
    const other = await app.call('POST', path, form({ decision: 'rejected', capability }))
    expect(other.status).toBe(409)
    expect(other.headers.get('content-type')).toContain('text/html')
    const { body } = await app.as('alpha', 'GET', `/api/v1/jobs/${jobId}?wait=20&until=end`)
    expect(body).toMatchObject({ status: 'finished', state_history: { decision: { comment: 'yes, do' } } })
  })

  test('[M-02] [M-07] its buttons say what they do, in the language of the browser', async () => {
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const { url } = await question(jobId)
    const texts = { en: ['Approve', 'Reject'], ru: ['Одобрить', 'Отклонить'], es: ['Aprobar', 'Rechazar'] }
    for (const [language, [approve, reject]] of Object.entries(texts)) {
      const page = await app.call('GET', pathOf(url), { headers: { 'accept-language': language } })
      expect(page.text).toContain(`<html lang="${language}">`)
      expect(page.text).toContain(`value="approved">${approve}</button>`)
      expect(page.text).toContain(`value="rejected">${reject}</button>`)
      expect(page.headers.get('vary')).toContain('Accept-Language')
    }
    const cut = await app.call('GET', `/_public/webhooks/approval/${jobId}?capability=cut`, {
      headers: { 'accept-language': 'ru' },
    })
    expect(cut.status).toBe(401)
    expect(cut.text).toContain('Ссылка недействительна')
  })

  test('[H-01] a form without a capability is nobody’s, whatever tokens come with it', async () => {
    const jobId = await app.jobIn('alpha', 'ask', 'waiting_for_human')
    const { body, headers } = form({ decision: 'approved' })
    const sent = await app.as('alpha', 'POST', `/_public/webhooks/approval/${jobId}`, body, headers)
    expect(sent.status).toBe(401)
    expect((await app.call('GET', `/_public/webhooks/approval/${jobId}`)).status).toBe(401)
    const elsewhere = await app.as('alpha', 'POST', '/api/v1/jobs', 'blueprint=ask', headers)
    expect(elsewhere.status).toBe(415)
  })
})
