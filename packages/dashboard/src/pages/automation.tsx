import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { FiringList, firingRows } from '../automation/firing-list.tsx'
import { textOf } from '../automation/draft.ts'
import { misfireOf } from '../automation/misfire.ts'
import { useAudit, useAutomation, usePreview, useRuns } from '../data/automation-queries.ts'
import type { AutomationBody } from '../data/automation-queries.ts'
import { duration } from '../data/format.ts'
import { usePost } from '../data/queries.ts'
import { useMayCommand } from '../data/session.ts'
import { useParam } from '../data/search.ts'
import { auditWords } from '../text/event-words.ts'
import { useText } from '../text/text.tsx'
import { whenWords } from '../text/when-words.ts'
import { Button, LinkButton } from '../ui/button.tsx'
import { JsonView } from '../ui/json.tsx'
import { Fact, Failure, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'
import { useSay } from '../ui/toast.tsx'
import { RunRow } from './runs.tsx'

export function AutomationPage(): ReactNode {
  const id = useParam('id')
  const { t, language } = useText()
  const { data: automation, error } = useAutomation(id)
  if (error !== null) return <Failure error={error} />
  if (automation === undefined) return <Loading />
  return (
    <>
      <PageHead
        title={
          <span className="flex flex-wrap items-center gap-3">
            <bdi className="[overflow-wrap:anywhere]">{automation.title}</bdi>
            <StatusBadge status={automation.status} />
          </span>
        }
        note={whenWords(automation.definition, automation.when, { t, language }).join('; ') || t('automations.byEvent')}
      >
        <Commands automation={automation} />
      </PageHead>
      <div className="grid gap-4 xl:grid-cols-2">
        <Firings id={id} />
        <History id={id} />
        <Audit id={id} />
        <Panel title={t('automations.definition')}>
          <Rules definition={automation.definition} />
          <JsonView value={automation.definition} label={automation.title} />
        </Panel>
      </div>
    </>
  )
}

const HOUR_S = 3_600

function Commands({ automation: { id, status, snoozed } }: { readonly automation: AutomationBody }): ReactNode {
  const { t } = useText()
  const say = useSay()
  const post = usePost()
  const mayCommand = useMayCommand()
  if (!mayCommand) return null
  const command = (verb: string, body?: unknown) => () =>
    post.mutate(
      { path: `automations/${encodeURIComponent(id)}/${verb}`, ...(body === undefined ? {} : { body }) },
      { onSuccess: () => say(t('common.done')), onError: (error) => say(error, true) },
    )
  return (
    <>
      <Button tone="primary" icon="run" onClick={command('run', {})}>
        {t('automations.run')}
      </Button>
      <LinkButton to="/automations/$id/edit" params={{ id }} icon="edit">
        {t('automations.edit')}
      </LinkButton>
      <Button icon="clock" onClick={command('snooze', { seconds: HOUR_S })}>
        {t('automations.snooze')}
      </Button>
      {status === 'paused' ? (
        <Button onClick={command('resume')}>{t('automations.resume')}</Button>
      ) : (
        <Button onClick={command('pause')}>{t('automations.pause')}</Button>
      )}
      {snoozed === null ? null : (
        <span className="text-xs text-warn">
          {t('automations.snoozed')} <Time at={snoozed.until} />
        </span>
      )}
    </>
  )
}

const OVERLAPS = ['queue', 'skip', 'restart', 'parallel'] as const

/** What happens when runs meet, and when times are missed. */
function Rules({ definition }: Pick<AutomationBody, 'definition'>): ReactNode {
  const { t, language } = useText()
  const overlap = OVERLAPS.find((one) => one === definition['overlap']) ?? 'queue'
  const { kind, most } = misfireOf(definition)
  const jitter = definition['jitter_seconds']
  return (
    <dl aria-label={t('automations.policies')} className="mb-4 grid grid-cols-2 gap-4 border-b border-line pb-4">
      <Fact name={t('editor.overlap')}>{t(`overlap.${overlap}`)}</Fact>
      <Fact name={t('editor.misfire')}>
        {t(`misfire.${kind}`)}
        {kind === 'catch_up' ? ` (${t('misfire.most').toLowerCase()}: ${textOf(most)})` : ''}
      </Fact>
      <Fact name={t('editor.timezone')}>{textOf(definition['timezone']) || 'UTC'}</Fact>
      <Fact name={t('editor.priority')}>{textOf(definition['priority']) || '5'}</Fact>
      {typeof jitter === 'number' && jitter > 0 ? (
        <Fact name={t('automations.jitter')}>{duration(jitter * 1_000, language)}</Fact>
      ) : null}
    </dl>
  )
}

/** The next ten firings, and those that are left out with the reason. */
function Firings({ id }: { readonly id: string }): ReactNode {
  const { t } = useText()
  const { data } = usePreview(id)
  const hasNone = firingRows(data).length === 0
  return (
    <Panel flush title={t('automations.next')} className="overflow-hidden">
      {hasNone ? <p className="px-4 py-5 text-soft">{t('automations.noNext')}</p> : null}
      <FiringList preview={data} />
    </Panel>
  )
}

function History({ id }: { readonly id: string }): ReactNode {
  const { t } = useText()
  const { data } = useRuns({ automation_id: id })
  const runs = data?.pages[0]?.items.slice(0, 15) ?? []
  return (
    <Panel flush title={t('nav.runs')} className="overflow-hidden">
      {runs.length === 0 ? <p className="px-4 py-5 text-soft">{t('runs.none')}</p> : null}
      <ul>
        {runs.map((run) => (
          <li key={run.id} className="border-b border-line last:border-b-0">
            <RunRow run={run} />
          </li>
        ))}
      </ul>
    </Panel>
  )
}

/** Who changed it, and which firings did not run. */
function Audit({ id }: { readonly id: string }): ReactNode {
  const { t } = useText()
  const { data } = useAudit({ subject: id })
  const entries = data?.pages[0]?.items.slice(0, 20) ?? []
  return (
    <Panel flush title={t('events.audit')} className="overflow-hidden">
      {entries.length === 0 ? <p className="px-4 py-5 text-soft">{t('events.none')}</p> : null}
      <ul className="max-h-80 overflow-y-auto">
        {entries.map(({ id: entry, at, actor, action, details }) => (
          <li key={entry} className="flex items-center gap-3 border-b border-line px-4 py-2 last:border-b-0">
            <Link
              to="/events"
              search={{ tab: 'audit', entry }}
              className="max-w-3/5 truncate font-medium hover:underline focus-visible:-outline-offset-2"
            >
              {auditWords(t, action)}
            </Link>
            <bdi className="min-w-0 flex-1 truncate text-soft">
              {[actor, typeof details['reason'] === 'string' ? details['reason'] : ''].filter(Boolean).join(' · ')}
            </bdi>
            <Time at={at} className="text-faint" />
          </li>
        ))}
      </ul>
    </Panel>
  )
}
