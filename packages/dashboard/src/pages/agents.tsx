import type { wire } from '@impresario/client'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { AgentForm } from '../agent/agent-form.tsx'
import { useAddress } from '../data/search.ts'
import { useAgents, useChange, useClients } from '../data/server-queries.ts'
import { useIsAdmin } from '../data/session.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Input } from '../ui/field.tsx'
import { PagedList } from '../ui/list.tsx'
import { Empty, Failure, Loading, PageHead, Panel, Tabs, Time } from '../ui/parts.tsx'
import { useSay } from '../ui/toast.tsx'

const TABS = ['agents', 'clients'] as const
type Tab = (typeof TABS)[number]

/** Who may use the server beside its workers: agents with their tokens, and the clients of the configuration. */
export function AgentsPage(): ReactNode {
  const { t } = useText()
  const [search, change] = useAddress()
  const isAdmin = useIsAdmin()
  const [isNew, setNew] = useState(false)
  const tab = TABS.find((one) => one === search['tab']) ?? 'agents'
  if (!isAdmin) {
    return (
      <>
        <PageHead title={t('agents.title')} note={t('agents.note')} />
        <Panel flush>
          <Empty icon="person" title={t('agents.forbidden')} />
        </Panel>
      </>
    )
  }
  return (
    <>
      <PageHead title={t('agents.title')} note={t('agents.note')}>
        <Button tone="primary" icon="plus" onClick={() => setNew(true)}>
          {t('agents.new')}
        </Button>
      </PageHead>
      <div className="mb-3">
        <Tabs<Tab>
          label={t('agents.title')}
          chosen={tab}
          choose={(next) => change({ tab: next === 'agents' ? undefined : next })}
          tabs={TABS.map((one) => [one, t(`agents.${one}`)])}
        />
      </div>
      {tab === 'agents' ? <AgentList /> : <ClientList />}
      {isNew ? <NewAgent close={() => setNew(false)} /> : null}
    </>
  )
}

function NewAgent({ close }: { readonly close: () => void }): ReactNode {
  const { t } = useText()
  const navigate = useNavigate()
  const create = useChange<wire.AgentBody>()
  return (
    <Dialog title={t('agents.new')} close={close}>
      <AgentForm
        error={create.error}
        isPending={create.isPending}
        submit={(body) =>
          create.mutate(
            { method: 'POST', path: 'agents', body },
            {
              onSuccess: ({ id }) => {
                void navigate({ to: '/agents/$id', params: { id } })
              },
            },
          )
        }
      />
    </Dialog>
  )
}

function AgentList(): ReactNode {
  const { t } = useText()
  const [search, change] = useAddress()
  return (
    <>
      <div className="mb-3 max-w-72">
        <Input
          type="search"
          label={t('agents.search')}
          isLabelHidden
          placeholder={t('agents.search')}
          maxLength={200}
          value={search['q'] ?? ''}
          onChange={({ target }) => change({ q: target.value }, true)}
        />
      </div>
      <PagedList
        pages={useAgents({ search: search['q'] })}
        keyOf={({ id }) => id}
        icon="person"
        none={t('agents.none')}
        noneNote={t('agents.noneNote')}
        row={(agent) => <AgentRow agent={agent} />}
      />
    </>
  )
}

function AgentRow({ agent }: { readonly agent: wire.AgentBody }): ReactNode {
  const { t } = useText()
  return (
    <Link
      to="/agents/$id"
      params={{ id: agent.id }}
      className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 hover:bg-raise"
    >
      <span className="min-w-0 flex-1 basis-60">
        <bdi className="block truncate font-medium">{agent.name}</bdi>
        <bdi className="block truncate text-xs text-soft">
          {agent.description ?? (agent.scopes.join(', ') || t('agents.noScopes'))}
        </bdi>
      </span>
      {agent.on_behalf_of === null ? null : (
        <span className="min-w-0 max-w-full truncate text-soft sm:max-w-64">
          {t('agents.person')} <bdi>{agent.on_behalf_of}</bdi>
        </span>
      )}
      <span className="num text-soft">
        {t('agents.tokens', { n: agent.tokens.filter(({ is_expired: isExpired }) => !isExpired).length })}
      </span>
      <Time at={agent.created_at} className="text-faint" />
    </Link>
  )
}

function ClientList(): ReactNode {
  const { t } = useText()
  const say = useSay()
  const { data, error, isPending, refetch } = useClients()
  const reload = useChange()
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center justify-between gap-3">
        <p className="max-w-prose min-w-0 flex-1 basis-72 text-soft">{t('clients.note')}</p>
        <Button
          icon="retry"
          disabled={reload.isPending}
          onClick={() =>
            reload.mutate(
              { method: 'POST', path: 'admin/reload' },
              { onSuccess: () => say(t('common.done')), onError: (failure) => say(failure.message, true) },
            )
          }
        >
          {t('clients.reload')}
        </Button>
      </div>
      {error === null ? null : <Failure error={error} retry={refetch} />}
      <Panel flush className="overflow-hidden">
        {isPending ? <Loading /> : null}
        {data?.length === 0 ? (
          <Empty icon="person" title={t('clients.none')}>
            {t('clients.noneNote')}
          </Empty>
        ) : null}
        <ul>
          {data?.map((client) => (
            <li
              key={client.client_id}
              className="flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-line px-4 py-2.5 last:border-b-0"
            >
              <span className="min-w-0 flex-1 basis-60">
                <Link
                  to="/jobs"
                  search={{ owner: client.client_id }}
                  className="block truncate font-medium hover:underline"
                >
                  <bdi>{client.client_id}</bdi>
                </Link>
                <span className="block text-xs text-soft">{t(`role.${client.role}`)}</span>
              </span>
              {client.plan === null ? null : <bdi className="text-soft">{client.plan}</bdi>}
              {client.monthly_attempts === null ? null : (
                <span className="num text-soft">{t('clients.attempts', { n: client.monthly_attempts })}</span>
              )}
              <span className="num text-soft">{t('clients.tokens', { n: client.tokens })}</span>
            </li>
          ))}
        </ul>
      </Panel>
    </>
  )
}
