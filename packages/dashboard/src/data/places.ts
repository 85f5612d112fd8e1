/** Where the application lies, with a slash at its end: a proxy may have put a prefix in front. */
export const BASE = new URL(document.baseURI)
const API = new URL(document.querySelector<HTMLMetaElement>('meta[name="api"]')?.content ?? '../api/v1/', BASE)
const ROOT = new URL('../', BASE)

/** Everything that a page has to send with a session, see `packages/server/src/dashboard/sessions.ts`. */
export const HEADERS = { 'x-impresario-dashboard': '1', accept: 'application/json' } as const

/** Tells who is signed in. */
export const SESSION_PATH = 'dashboard/session'

export type Query = Readonly<Record<string, string | number | undefined>>

export function apiUrl(path: string, query: Query = {}): URL {
  const url = new URL(path.replace(/^\//, ''), API)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') url.searchParams.set(name, String(value))
  }
  return url
}

/** Of the server itself, outside of the client API. */
export function rootUrl(path: string): URL {
  return new URL(path, ROOT)
}
