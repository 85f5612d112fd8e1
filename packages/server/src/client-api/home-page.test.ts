import { expect, onTestFinished, test } from 'vitest'
import { createHttp } from '../http/http.ts'
import { SILENT } from '../runtime/log.ts'
import { startTestServer } from '../server.fixture.ts'
import { registerHome } from './home-page.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

function homeWith(hasDashboard: boolean): ReturnType<typeof createHttp> {
  const app = createHttp({ bodyLimitBytes: 1_024, log: SILENT })
  onTestFinished(() => app.close())
  registerHome(app, hasDashboard)
  return app
}

test('[M-01] [M-02] the root leads people to the dashboard, behind every prefix', async () => {
  const answer = await homeWith(true).inject({ url: '/', headers: { accept: BROWSER } })
  expect([answer.statusCode, answer.headers.location]).toEqual([302, 'dashboard'])
  expect(answer.headers.vary).toContain('Accept')
})

test('[M-01] [H-01] the root answers people with a page where there is no dashboard, and programs with JSON', async () => {
  const home = homeWith(false)
  const page = await home.inject({ url: '/', headers: { accept: BROWSER } })
  expect(page.statusCode).toBe(200)
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8')
  expect(page.headers['content-security-policy']).toContain("default-src 'none'")
  expect(page.body).toContain('<a href="/_public/docs">')
  const app = await startTestServer()
  onTestFinished(() => app.server.stop())
  for (const accept of ['*/*', 'application/json', 'application/json, text/html', undefined]) {
    const answer = await app.call('GET', '/', { headers: accept === undefined ? {} : { accept } })
    expect(answer.body).toMatchObject({ name: 'impresario', links: { openapi: '/_public/openapi.json' } })
    expect(answer.headers.get('vary')).toContain('Accept')
  }
  for (const [, path] of page.body.matchAll(/href="([^"]+)"/g)) {
    expect((await app.call('GET', path ?? '')).status).toBe(200)
  }
})
