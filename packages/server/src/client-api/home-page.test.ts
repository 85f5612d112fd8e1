import { expect, test } from 'vitest'
import { startTestServer } from '../server.fixture.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

test('[M-01] [H-01] the root answers people with a page and programs with JSON', async () => {
  const app = await startTestServer()
  const page = await app.call('GET', '/', { headers: { accept: BROWSER } })
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(page.text).toContain('<a href="/_public/docs">')
  for (const accept of ['*/*', 'application/json', 'application/json, text/html', undefined]) {
    const answer = await app.call('GET', '/', { headers: accept === undefined ? {} : { accept } })
    expect(answer.body).toMatchObject({ name: 'impresario', links: { openapi: '/_public/openapi.json' } })
    expect(answer.headers.get('vary')).toContain('Accept')
  }
  for (const [, path] of page.text.matchAll(/href="([^"]+)"/g)) {
    expect((await app.call('GET', path ?? '')).status).toBe(200)
  }
})
