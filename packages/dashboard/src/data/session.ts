import { useQuery, useQueryClient } from '@tanstack/react-query'
import type { QueryClient } from '@tanstack/react-query'
import { ApiError, sendRoot } from './api.ts'

export interface Session {
  readonly client_id: string
  readonly role: 'viewer' | 'client' | 'admin'
  /** Null where nobody needs to sign in. */
  readonly expires_at: number | null
}

const KEY = ['session']
const PATH = 'dashboard/session'

/** Who is signed in; null for nobody. */
export function useSession(): { readonly session: Session | null | undefined; readonly error: Error | null } {
  const { data, error } = useQuery({ queryKey: KEY, queryFn: readSession, staleTime: Infinity, retry: false })
  return { session: data, error }
}

async function readSession(): Promise<Session | null> {
  const code = takeCode()
  try {
    if (code !== undefined) return await sendRoot<Session>('POST', PATH, { code })
  } catch (error) {
    // A link is opened twice more often than it is stolen: who is signed in already stays so.
    if (!(error instanceof ApiError) || error.status !== 401) throw error
  }
  try {
    return await sendRoot<Session>('GET', PATH)
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return null
    throw error
  }
}

/** Takes the code of a link that signs in out of the address, so that it stays in no history. */
function takeCode(): string | undefined {
  const code = /^#code=(?<code>[\w.-]+)$/.exec(location.hash)?.groups?.['code']
  if (code !== undefined) history.replaceState(history.state, '', location.pathname + location.search)
  return code
}

export function useSignIn(): (token: string) => Promise<void> {
  const queries = useQueryClient()
  return async (token) => {
    queries.setQueryData(KEY, await sendRoot<Session>('POST', PATH, { token }))
  }
}

export async function signOut(queries: QueryClient): Promise<void> {
  await sendRoot('DELETE', PATH)
  forgetSession(queries)
}

export function forgetSession(queries: QueryClient): void {
  queries.setQueryData(KEY, null)
}

/** Whether this session may change things. */
export function useMayCommand(): boolean {
  const { session } = useSession()
  return session?.role === 'client' || session?.role === 'admin'
}
