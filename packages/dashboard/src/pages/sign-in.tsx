import { useState } from 'react'
import type { ReactNode } from 'react'
import { useIsSessionOver, useSignIn } from '../data/session.ts'
import { refusalWords } from '../text/refusal-words.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Input } from '../ui/field.tsx'
import { Code } from '../ui/parts.tsx'

export function SignIn(): ReactNode {
  const { t } = useText()
  const signIn = useSignIn()
  const isOver = useIsSessionOver()
  const [token, setToken] = useState('')
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  return (
    <main className="grid min-h-full place-items-center p-4">
      <form
        className="flex w-full max-w-sm flex-col gap-5"
        onSubmit={(event) => {
          event.preventDefault()
          setBusy(true)
          signIn(token.trim())
            .catch((error: unknown) => {
              const { title, detail = '' } = refusalWords(t, error)
              setProblem(`${title} ${detail}`.trim())
            })
            .finally(() => setBusy(false))
        }}
      >
        <div className="flex flex-col items-center gap-3 text-center">
          <img src="icon.svg" alt="" className="size-11" />
          <h1 className="text-xl font-semibold tracking-tight">{t('signIn.title')}</h1>
          {isOver ? (
            <p role="status" className="font-medium text-warn">
              {t('signIn.over')}
            </p>
          ) : null}
          <p className="text-soft">{t('signIn.note')}</p>
        </div>
        <div className="flex flex-col gap-4 rounded-xl border border-line bg-panel p-5 shadow-card">
          <Input
            label={t('signIn.token')}
            type="password"
            autoComplete="current-password"
            autoFocus
            required
            value={token}
            problem={problem}
            onChange={({ target }) => {
              setToken(target.value)
              setProblem(undefined)
            }}
          />
          <Button tone="primary" size="large" type="submit" disabled={isBusy || token.trim() === ''}>
            {t('signIn.do')}
          </Button>
        </div>
        <p className="text-center text-xs text-soft">
          {t('signIn.link')} <Code>impresario open</Code>
        </p>
      </form>
    </main>
  )
}
