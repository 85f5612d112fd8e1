import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode, useEffect } from 'react'
import type { ReactNode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError, onSignedOut } from './data/api.ts'
import { endSession, useSession } from './data/session.ts'
import { SignIn } from './pages/sign-in.tsx'
import { createAppRouter } from './router.tsx'
import { TextProvider } from './text/text.tsx'
import { Failure } from './ui/parts.tsx'
import { ToastProvider } from './ui/toast.tsx'

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      // What was refused once is refused again; a server that restarts is there again soon.
      // The server may be on this machine or in this house: what the browser thinks of its network says nothing.
      networkMode: 'always',
      retry: (count, error) => count < 3 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
    },
    mutations: { networkMode: 'always' },
  },
})
const router = createAppRouter()

function App(): ReactNode {
  const { session, error } = useSession()
  useEffect(() => onSignedOut(() => endSession(queries)), [])
  if (error !== null) {
    return (
      <div className="p-6">
        <Failure
          error={error}
          retry={() => {
            void queries.invalidateQueries()
          }}
        />
      </div>
    )
  }
  if (session === undefined) return null
  return session === null ? <SignIn /> : <RouterProvider router={router} />
}

const root = document.querySelector('#app')
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <TextProvider>
          <ToastProvider>
            <App />
          </ToastProvider>
        </TextProvider>
      </QueryClientProvider>
    </StrictMode>,
  )
}
