import type { wire } from '@impresario/client'
import type { ReactNode } from 'react'
import { useEndpoint } from '../data/entry-queries.ts'
import { absolute } from '../data/format.ts'
import { useMayCommand } from '../data/session.ts'
import { EntryDialog, EntryFact } from '../event/entry-dialog.tsx'
import { useText } from '../text/text.tsx'
import { Fact, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'
import { EndpointActions } from './endpoint-actions.tsx'

/** Somebody who gets webhooks: whether messages are sent to it, how it fared, and what can be done about it. */
export function EndpointEntry({ id, close }: { readonly id: string; readonly close: () => void }): ReactNode {
  const { data, error } = useEndpoint(id)
  const mayCommand = useMayCommand()
  return (
    <EntryDialog
      id={id}
      entry={data}
      error={error}
      close={close}
      title={({ address }) => address}
      below={(endpoint) => (mayCommand ? <EndpointActions endpoint={endpoint} /> : null)}
    >
      {(endpoint) => <Facts endpoint={endpoint} />}
    </EntryDialog>
  )
}

function Facts({ endpoint }: { readonly endpoint: wire.EndpointBody }): ReactNode {
  const { t } = useText()
  const { disabled_reason: reason } = endpoint
  return (
    <>
      <Fact isFull name={t('endpoint.state')}>
        <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <StatusBadge status={endpoint.status} />
          <span>{t(`endpoint.about.${endpoint.status}`)}</span>
        </span>
      </Fact>
      {reason === null ? null : (
        <Fact isFull name={t('endpoint.why')}>
          {t(`endpoint.why.${reason}`)}
        </Fact>
      )}
      <Moment name={t('endpoint.disabledAt')} at={endpoint.disabled_at} />
      <Moment name={t('endpoint.pausedUntil')} at={endpoint.paused_until} />
      <EntryFact name={t('endpoint.failures')} value={endpoint.consecutive_failures} />
      <Moment name={t('endpoint.failingSince')} at={endpoint.failing_since} />
      <Moment name={t('endpoint.success')} at={endpoint.last_success_at} none={t('endpoint.never')} />
      <Moment name={t('endpoint.failure')} at={endpoint.last_failure_at} none={t('endpoint.never')} />
      <EntryFact name={t('endpoint.error')} value={endpoint.last_error} />
      <EntryFact name={t('entry.owner')} value={endpoint.owner} />
      <Moment name={t('endpoint.created')} at={endpoint.created_at} />
    </>
  )
}

/** Without `none`, a moment that has not been is left out. */
function Moment({
  name,
  at,
  none,
}: {
  readonly name: string
  readonly at: number | null
  readonly none?: string
}): ReactNode {
  const { language } = useText()
  if (at === null) return none === undefined ? null : <Fact name={name}>{none}</Fact>
  return (
    <Fact name={name}>
      <span className="num">{absolute(at, language)}</span> <Time at={at} className="text-xs text-faint" />
    </Fact>
  )
}
