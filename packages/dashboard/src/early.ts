import type { EarlyWindow } from './data/early-answers.ts'
import { apiUrl, BASE, HEADERS, rootUrl, SESSION_PATH } from './data/places.ts'
import { PAGE_ROWS, queryOf, ROW_FIELDS } from './job/job-query.ts'

/** Runs before the application is there: it sets the theme, and asks for what the first page will need. */
function begin(): void {
  // Before the first paint, so that a dark page does not flash white.
  const chosen = localStorage.getItem('impresario.theme')
  const isDark = chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset['theme'] = isDark ? 'dark' : 'light'
  // A link that signs in begins with nobody or with somebody else.
  if (location.hash.startsWith('#code=')) return
  const answers = new Map<string, Promise<Response | undefined>>()
  for (const url of [rootUrl(SESSION_PATH), ...urlsOf(location.pathname.slice(BASE.pathname.length))]) {
    const answer = fetch(url, { credentials: 'same-origin', headers: HEADERS })
    answers.set(
      url.href,
      answer.catch(() => undefined),
    )
  }
  const page = globalThis as EarlyWindow
  page.impresarioEarly = answers
}

/** What the pages ask for that people open first. */
function urlsOf(path: string): readonly URL[] {
  if (path === '') return [apiUrl('dashboard'), apiUrl('jobs', { fields: ROW_FIELDS, limit: 10 })]
  if (path === 'jobs') {
    const search = Object.fromEntries(new URLSearchParams(location.search))
    return [apiUrl('jobs', { ...queryOf(search), fields: ROW_FIELDS, limit: PAGE_ROWS })]
  }
  const id = /^jobs\/(?<id>[^/]+)$/.exec(path)?.groups?.['id']
  return id === undefined ? [] : [apiUrl(`jobs/${id}`)]
}

begin()
