/** Sample requests for the tests that ask every route. */

/** Its run stays open until somebody decides. */
export const SAMPLE_AUTOMATION = { title: 'Ask', pipeline: [{ id: 'ask', approval: { message: 'Go on?' } }] }

/** A body that a route takes, as far as it needs one. */
export function sampleBody(method: string, url: string): object {
  if (/^\/tasks\/.*\/snooze$/.test(url)) return { delay_seconds: 1 }
  if (url.includes('approval')) return { decision: 'nonsense' }
  if (url.endsWith('tasks/batch')) return { limit: 1, timeout: 0 }
  if (url.endsWith('/snooze')) return { seconds: 1 }
  if (url.endsWith('/observe')) return { values: {} }
  if (url.endsWith('/events')) return { topic: 'a.b' }
  if (method === 'PUT' && url.includes('secrets')) return { value: 'a value of the tests' }
  if (method === 'PUT' && url.includes('views')) return { search: { show: 'failed' } }
  if (method === 'PUT' && url.includes('hooks')) return { preset: 'github' }
  if (method === 'PUT' && url.includes('calendar')) return { entries: [{ date: '2026-12-25' }] }
  return method === 'PUT' && url.includes('automation') ? SAMPLE_AUTOMATION : {}
}
