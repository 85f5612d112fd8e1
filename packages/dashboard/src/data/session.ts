import { useQuery, useQueryClient } from '@tanstack/react-query'
import type { QueryClient } from '@tanstack/react-query'
import { ApiError, sendRoot } from './api.ts'
import { forgetEarly } from './early-answers.ts'
import { SESSION_PATH as PATH } from './places.ts'

export interface Session {
  readonly client_id: string
  readonly role: 'viewer' | 'client' | 'admin'
  /** Null where nobody needs to sign in. */
  readonly expires_at: number | null
}

const KEY = ['session']

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
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
      forgetEarly()
      return null
    }
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
  queries.setQueryData(OVER, false)
  forgetSession(queries)
}

const OVER = ['session-over']

/** Whether a session has ended by itself while this page was open. */
export function useIsSessionOver(): boolean {
  return useQueryClient().getQueryData<boolean>(OVER) === true
}

/** The server knows the session no longer. */
export function endSession(queries: QueryClient): void {
  if (queries.getQueryData<Session | null>(KEY)) queries.setQueryData(OVER, true)
  forgetSession(queries)
}

function forgetSession(queries: QueryClient): void {
  forgetEarly()
  queries.setQueryData(KEY, null)
}

/** Whether this session may change things. */
export function useMayCommand(): boolean {
  const { session } = useSession()
  return session?.role === 'client' || session?.role === 'admin'
}

export function useIsAdmin(): boolean {
  return useSession().session?.role === 'admin'
}
