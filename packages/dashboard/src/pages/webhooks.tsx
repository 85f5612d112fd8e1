import type { wire } from '@impresario/client'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { useDeliveries, useEndpoints } from '../data/automation-queries.ts'
import { shortId } from '../data/format.ts'
import { DeliveryEntry } from '../event/entries.tsx'
import { useOpenEntry } from '../event/entry-dialog.tsx'
import { EntryLink, useEntryKeys } from '../event/entry-row.tsx'
import { usePost } from '../data/queries.ts'
import { useAddress } from '../data/search.ts'
import { useMayCommand } from '../data/session.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { PagedList } from '../ui/list.tsx'
import { PageHead, Tabs, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'
import { useSay } from '../ui/toast.tsx'
import { EndpointEntry } from '../webhook/endpoint-entry.tsx'
import { NewEndpoint } from '../webhook/new-endpoint.tsx'

const TABS = ['deliveries', 'endpoints'] as const
type Tab = (typeof TABS)[number]
const ENTRIES = { deliveries: DeliveryEntry, endpoints: EndpointEntry } as const

export function WebhooksPage(): ReactNode {
  const { t } = useText()
  const [search, change] = useAddress()
  const tab = TABS.find((one) => one === search['tab']) ?? 'deliveries'
  const [open, close] = useOpenEntry()
  useEntryKeys()
  const Entry = ENTRIES[tab]
  return (
    <>
      <PageHead title={t('nav.webhooks')} note={t('webhooks.note')} />
      <div className="mb-3">
        <Tabs<Tab>
          label={t('nav.webhooks')}
          chosen={tab}
          choose={(next) => change({ tab: next === 'deliveries' ? undefined : next, entry: undefined })}
          tabs={TABS.map((one) => [one, t(`webhooks.${one}`)])}
        />
      </div>
      {tab === 'deliveries' ? <Deliveries /> : <Endpoints />}
      {open === undefined ? null : <Entry key={open} id={open} close={close} />}
    </>
  )
}

function Deliveries(): ReactNode {
  const { t } = useText()
  return (
    <PagedList
      pages={useDeliveries({})}
      keyOf={({ id }) => id}
      icon="hook"
      none={t('webhooks.none')}
      noneNote={t('webhooks.noneNote')}
      row={(delivery) => <Delivery delivery={delivery} />}
    />
  )
}

function Delivery({ delivery }: { readonly delivery: wire.DeliveryBody }): ReactNode {
  const { t } = useText()
  const say = useSay()
  const post = usePost()
  const mayCommand = useMayCommand()
  const last = delivery.attempts.at(-1)
  return (
    <div className="relative flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 hover:bg-raise">
      <span className="min-w-0 flex-1 basis-60">
        <span className="flex items-center gap-2">
          <EntryLink id={delivery.id}>{delivery.event}</EntryLink>
          <Link
            to="/jobs/$id"
            params={{ id: delivery.job_id }}
            className="relative z-1 font-mono text-xs text-accent hover:underline"
          >
            {shortId(delivery.job_id)}
          </Link>
        </span>
        <bdi className="block truncate text-xs text-soft">{last?.error ?? delivery.url}</bdi>
      </span>
      <StatusBadge status={delivery.status} />
      <Time at={delivery.created_at} className="relative z-1 text-faint" />
      {mayCommand ? (
        <Button
          size="small"
          icon="retry"
          className="relative z-1"
          onClick={() =>
            post.mutate(
              { path: `webhooks/deliveries/${encodeURIComponent(delivery.id)}/redeliver` },
              { onSuccess: () => say(t('common.done')), onError: (error) => say(error, true) },
            )
          }
        >
          {t('webhooks.redeliver')}
        </Button>
      ) : null}
    </div>
  )
}

function Endpoints(): ReactNode {
  const { t } = useText()
  const [, change] = useAddress()
  const mayCommand = useMayCommand()
  const [isNew, setNew] = useState(false)
  const close = (): void => setNew(false)
  return (
    <>
      {mayCommand ? (
        <div className="mb-3 flex justify-end">
          <Button icon="plus" onClick={() => setNew(true)}>
            {t('endpoint.new')}
          </Button>
        </div>
      ) : null}
      <PagedList
        pages={useEndpoints()}
        keyOf={({ id }) => id}
        icon="hook"
        none={t('webhooks.noEndpoints')}
        noneNote={t('webhooks.noneNote')}
        row={(endpoint) => <Endpoint endpoint={endpoint} />}
      />
      {isNew ? (
        <NewEndpoint
          close={close}
          open={(id) => {
            close()
            change({ entry: id })
          }}
        />
      ) : null}
    </>
  )
}

function Endpoint({ endpoint }: { readonly endpoint: wire.EndpointBody }): ReactNode {
  return (
    <div className="relative flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 hover:bg-raise">
      <span className="min-w-0 flex-1 basis-60">
        <EntryLink id={endpoint.id} className="block truncate">
          <bdi>{endpoint.address}</bdi>
        </EntryLink>
        <bdi className="block truncate text-xs text-bad">{endpoint.last_error}</bdi>
      </span>
      {endpoint.last_success_at === null ? null : (
        <Time at={endpoint.last_success_at} className="relative z-1 text-faint" />
      )}
      <StatusBadge status={endpoint.status} />
    </div>
  )
}
