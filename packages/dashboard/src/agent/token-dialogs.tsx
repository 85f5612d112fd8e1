import type { wire } from '@impresario/client'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { useChange } from '../data/server-queries.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Input, Select, TextArea } from '../ui/field.tsx'
import { CopyButton, Failure } from '../ui/parts.tsx'
import { useSay } from '../ui/toast.tsx'
import { nextName } from './next-name.ts'

const DAYS = [7, 30, 90, 365] as const
const DAY_SECONDS = 86_400
const FOR_EVER = 'ever'

/** Makes a token and shows it, this once. With `old` it takes the place of one, which works until it is revoked. */
export function NewTokenDialog({
  agent,
  old,
  close,
}: {
  readonly agent: wire.AgentBody
  readonly old?: wire.AgentTokenBody
  readonly close: () => void
}): ReactNode {
  const { t } = useText()
  const names = agent.tokens.filter(({ is_expired: isExpired }) => !isExpired).map(({ name }) => name)
  const [name, setName] = useState(old === undefined ? '' : nextName(old.name, names))
  const [days, setDays] = useState('90')
  const create = useChange<wire.NewAgentTokenBody>()
  const { data: made } = create
  const title = old === undefined ? t('token.new') : t('token.rotateOne', { name: old.name })
  if (made !== undefined) return <MadeToken title={title} token={made.token} agent={agent} old={old} close={close} />
  return (
    <Dialog title={title} close={close}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          create.mutate({
            method: 'POST',
            path: `agents/${encodeURIComponent(agent.id)}/tokens`,
            body: {
              name: name.trim(),
              expires_in_seconds: days === FOR_EVER ? null : Number(days) * DAY_SECONDS,
              ...(old === undefined || old.on_behalf_of === null ? {} : { on_behalf_of: old.on_behalf_of }),
            },
          })
        }}
      >
        {old === undefined ? null : <p className="text-soft">{t('token.rotateNote')}</p>}
        <Input
          label={t('token.name')}
          required
          maxLength={100}
          value={name}
          onChange={({ target }) => setName(target.value)}
        />
        <Select label={t('token.span')} value={days} onChange={({ target }) => setDays(target.value)}>
          {DAYS.map((n) => (
            <option key={n} value={n}>
              {t('token.days', { n })}
            </option>
          ))}
          <option value={FOR_EVER}>{t('token.never')}</option>
        </Select>
        {create.error === null ? null : <Failure error={create.error} />}
        <div className="flex justify-end">
          <Button type="submit" tone="primary" disabled={create.isPending || name.trim() === ''}>
            {t('token.create')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function MadeToken({
  title,
  token,
  agent,
  old,
  close,
}: {
  readonly title: string
  readonly token: string
  readonly agent: wire.AgentBody
  readonly old: wire.AgentTokenBody | undefined
  readonly close: () => void
}): ReactNode {
  const { t } = useText()
  const { revoke, isPending, error } = useRevocation(agent, old, close)
  return (
    <Dialog title={title} close={close}>
      <p className="mb-3 font-medium">{t('token.once')}</p>
      <div className="mb-4 flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <TextArea
            label={t('token.secret')}
            isLabelHidden
            readOnly
            spellCheck={false}
            className="min-h-16 font-mono text-xs break-all"
            value={token}
            onFocus={({ target }) => target.select()}
          />
        </div>
        <CopyButton text={token} label={t('common.copy')} />
      </div>
      {error === null ? null : <Failure error={error} />}
      <div className="flex flex-wrap justify-end gap-2">
        {old === undefined ? null : (
          <Button tone="danger" disabled={isPending} onClick={revoke}>
            {t('token.revokeOne', { name: old.name })}
          </Button>
        )}
        <Button onClick={close}>{t('common.close')}</Button>
      </div>
    </Dialog>
  )
}

/** Ends a token, says so and closes the dialog. */
function useRevocation(
  agent: wire.AgentBody,
  token: wire.AgentTokenBody | undefined,
  close: () => void,
): { readonly revoke: () => void; readonly isPending: boolean; readonly error: Error | null } {
  const { t } = useText()
  const say = useSay()
  const { mutate, isPending, error } = useChange()
  const revoke = (): void => {
    if (token === undefined) return
    const path = `agents/${encodeURIComponent(agent.id)}/tokens/${encodeURIComponent(token.id)}`
    const onSuccess = (): void => {
      say(t('token.revoked'))
      close()
    }
    mutate({ method: 'DELETE', path }, { onSuccess })
  }
  return { revoke, isPending, error }
}

export function RevokeDialog({
  agent,
  token,
  close,
}: {
  readonly agent: wire.AgentBody
  readonly token: wire.AgentTokenBody
  readonly close: () => void
}): ReactNode {
  const { t } = useText()
  const { revoke, isPending, error } = useRevocation(agent, token, close)
  return (
    <Dialog title={t('token.revokeOne', { name: token.name })} close={close}>
      <p className="mb-4 text-soft">{t('token.revokeNote')}</p>
      {error === null ? null : <Failure error={error} />}
      <div className="flex justify-end gap-2">
        <Button onClick={close}>{t('common.back')}</Button>
        <Button tone="danger" disabled={isPending} onClick={revoke}>
          {t('token.revoke')}
        </Button>
      </div>
    </Dialog>
  )
}
