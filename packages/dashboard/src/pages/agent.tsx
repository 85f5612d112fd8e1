import type { wire } from '@impresario/client'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { AgentForm } from '../agent/agent-form.tsx'
import { NewTokenDialog, RevokeDialog } from '../agent/token-dialogs.tsx'
import { absolute } from '../data/format.ts'
import { useParam } from '../data/search.ts'
import { useAgent, useChange } from '../data/server-queries.ts'
import { useText } from '../text/text.tsx'
import { Button, LinkButton } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Empty, Fact, Failure, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'
import { Said } from '../ui/toast.tsx'

type Open =
  | { readonly what: 'edit' | 'delete' | 'new' }
  | { readonly what: 'rotate' | 'revoke'; readonly token: wire.AgentTokenBody }

export function AgentPage(): ReactNode {
  const { t } = useText()
  const id = useParam('id')
  const { data: agent, error } = useAgent(id)
  const [open, setOpen] = useState<Open>()
  const close = (): void => setOpen(undefined)
  if (error !== null) {
    return (
      <>
        <PageHead title={t('agents.title')} />
        <Empty icon="person" title={t('agents.gone')}>
          <p className="mb-4">
            <Said what={error} />
          </p>
          <LinkButton to="/agents">{t('agents.title')}</LinkButton>
        </Empty>
      </>
    )
  }
  if (agent === undefined) return <Loading rows={6} />
  return (
    <>
      <PageHead title={<bdi className="[overflow-wrap:anywhere]">{agent.name}</bdi>} note={agent.description}>
        <Button icon="edit" onClick={() => setOpen({ what: 'edit' })}>
          {t('agents.edit')}
        </Button>
        <Button tone="danger" icon="trash" onClick={() => setOpen({ what: 'delete' })}>
          {t('agents.delete')}
        </Button>
      </PageHead>
      <div className="grid items-start gap-4 xl:grid-cols-2">
        <Facts agent={agent} />
        <Tokens agent={agent} open={setOpen} />
      </div>
      {open?.what === 'edit' ? <EditDialog agent={agent} close={close} /> : null}
      {open?.what === 'delete' ? <DeleteDialog agent={agent} close={close} /> : null}
      {open?.what === 'new' ? <NewTokenDialog agent={agent} close={close} /> : null}
      {open?.what === 'rotate' ? <NewTokenDialog agent={agent} old={open.token} close={close} /> : null}
      {open?.what === 'revoke' ? <RevokeDialog agent={agent} token={open.token} close={close} /> : null}
    </>
  )
}

function Facts({ agent }: { readonly agent: wire.AgentBody }): ReactNode {
  const { t } = useText()
  const budget = Object.entries(agent.budget ?? {}).filter(([, value]) => value !== undefined && value !== null)
  return (
    <Panel title={t('agents.facts')}>
      <dl className="grid grid-cols-2 gap-4">
        <Fact name={t('agents.created')}>
          <Time at={agent.created_at} /> · <bdi>{agent.created_by}</bdi>
        </Fact>
        <Fact name={t('agents.changed')}>
          <Time at={agent.updated_at} /> · <bdi>{agent.updated_by}</bdi>
        </Fact>
        <Fact name={t('agents.person')}>{agent.on_behalf_of === null ? '–' : <bdi>{agent.on_behalf_of}</bdi>}</Fact>
        <Fact name={t('agents.budget')}>
          {budget.length === 0
            ? t('settings.noLimit')
            : budget.map(([name, value]) => `${name.replaceAll('_', ' ')}: ${String(value)}`).join(', ')}
        </Fact>
        <Fact isWide name={t('agents.scopes')}>
          {agent.scopes.length === 0 ? (
            t('agents.noScopes')
          ) : (
            <span className="mt-1 flex flex-wrap gap-1">
              {agent.scopes.map((scope) => (
                <span key={scope} className="rounded bg-raise px-1.5 py-0.5 font-mono text-xs text-soft">
                  {scope}
                </span>
              ))}
            </span>
          )}
        </Fact>
      </dl>
    </Panel>
  )
}

function Tokens({ agent, open }: { readonly agent: wire.AgentBody; readonly open: (what: Open) => void }): ReactNode {
  const { t, language } = useText()
  return (
    <Panel
      flush
      title={t('token.list')}
      className="overflow-hidden"
      actions={
        <Button size="small" icon="plus" onClick={() => open({ what: 'new' })}>
          {t('token.new')}
        </Button>
      }
    >
      {agent.tokens.length === 0 ? <p className="px-4 py-5 text-soft">{t('token.none')}</p> : null}
      <ul>
        {agent.tokens.map((token) => (
          <li
            key={token.id}
            className="flex flex-wrap items-center gap-x-3 gap-y-2 border-b border-line px-4 py-2.5 last:border-b-0"
          >
            <span className="min-w-0 flex-1 basis-48">
              <bdi className="block truncate font-medium">{token.name}</bdi>
              <span className={`block text-xs ${token.is_expired ? 'text-bad' : 'text-soft'}`}>
                {token.expires_at === null ? (
                  t('token.never')
                ) : (
                  <>
                    {t(token.is_expired ? 'token.expired' : 'token.until')} {absolute(token.expires_at, language)}
                  </>
                )}
              </span>
            </span>
            <span className="flex gap-2">
              <Button
                size="small"
                icon="retry"
                aria-label={t('token.rotateOne', { name: token.name })}
                onClick={() => open({ what: 'rotate', token })}
              >
                {t('token.rotate')}
              </Button>
              <Button
                size="small"
                tone="danger"
                aria-label={t('token.revokeOne', { name: token.name })}
                onClick={() => open({ what: 'revoke', token })}
              >
                {t('token.revoke')}
              </Button>
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

interface AgentDialogProps {
  readonly agent: wire.AgentBody
  readonly close: () => void
}

function EditDialog({ agent, close }: AgentDialogProps): ReactNode {
  const { t } = useText()
  const save = useChange()
  return (
    <Dialog title={t('agents.edit')} close={close}>
      <AgentForm
        agent={agent}
        error={save.error}
        isPending={save.isPending}
        submit={(body) =>
          save.mutate({ method: 'PATCH', path: `agents/${encodeURIComponent(agent.id)}`, body }, { onSuccess: close })
        }
      />
    </Dialog>
  )
}

function DeleteDialog({ agent, close }: AgentDialogProps): ReactNode {
  const { t } = useText()
  const navigate = useNavigate()
  const remove = useChange()
  return (
    <Dialog title={t('agents.deleteTitle', { name: agent.name })} close={close}>
      <p className="mb-4 text-soft">{t('agents.deleteNote')}</p>
      {remove.error === null ? null : <Failure error={remove.error} />}
      <div className="flex justify-end gap-2">
        <Button onClick={close}>{t('common.back')}</Button>
        <Button
          tone="danger"
          disabled={remove.isPending}
          onClick={() =>
            remove.mutate(
              { method: 'DELETE', path: `agents/${encodeURIComponent(agent.id)}` },
              {
                onSuccess: () => {
                  void navigate({ to: '/agents' })
                },
              },
            )
          }
        >
          {t('agents.delete')}
        </Button>
      </div>
    </Dialog>
  )
}
