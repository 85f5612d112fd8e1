import type { ReactNode } from 'react'
import type { AuditBody, PublishedBody } from '../data/automation-queries.ts'
import { useAuditEntry, useDelivery, useEvent, usePublishedEvent } from '../data/entry-queries.ts'
import { duration } from '../data/format.ts'
import { auditWords, eventWords } from '../text/event-words.ts'
import { useText } from '../text/text.tsx'
import { Fact } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'
import { EntryDialog, EntryFact, Moment, SubjectLink, Subjects } from './entry-dialog.tsx'
import { subjectsOfAudit, subjectsOfEvent } from './entry-links.ts'

interface Opened {
  readonly id: string
  readonly close: () => void
}

/** Something that happened to a job or a worker. */
export function EventEntry({ id, close }: Opened): ReactNode {
  const { t, language } = useText()
  const { data, error } = useEvent(id)
  return (
    <EntryDialog id={id} entry={data} error={error} close={close} title={({ event_type: type }) => eventWords(t, type)}>
      {(event) => (
        <>
          <Moment at={event.timestamp} />
          <EntryFact name={t('entry.name')} value={event.event_type} />
          <Subjects of={subjectsOfEvent(event)} />
          <EntryFact name={t('entry.owner')} value={event.owner} />
          <EntryFact name={t('entry.state')} value={event.state} />
          <EntryFact name={t('entry.way')} value={wayOf(event.previous_state, event.next_state)} />
          <EntryFact name={t('entry.task')} value={event.task_id} />
          <EntryFact name={t('entry.attempt')} value={event.attempt_number} />
          <EntryFact
            name={t('entry.took')}
            value={event.duration_ms === null ? null : duration(event.duration_ms, language)}
          />
          <EntryFact name={t('entry.remark')} value={event.note} />
        </>
      )}
    </EntryDialog>
  )
}

function wayOf(from: string | null, to: string | null): string {
  return from === null && to === null ? '' : `${from ?? '–'} → ${to ?? '–'}`
}

/** Who changed what. */
export function AuditEntry({ id, close }: Opened): ReactNode {
  const { t } = useText()
  const { data, error } = useAuditEntry(id)
  return (
    <EntryDialog id={id} entry={data} error={error} close={close} title={({ action }) => auditWords(t, action)}>
      {(entry: AuditBody) => (
        <>
          <Moment at={entry.at} />
          <EntryFact name={t('entry.name')} value={entry.action} />
          <EntryFact name={t('entry.actor')} value={entry.actor} />
          <EntryFact name={t('entry.person')} value={entry.on_behalf_of} />
          <Subjects of={subjectsOfAudit(entry)} />
          {subjectsOfAudit(entry).some((one) => one.id === entry.subject) ? null : (
            <EntryFact name={t('entry.subject')} value={entry.subject} />
          )}
          <EntryFact name={t('entry.owner')} value={entry.owner} />
        </>
      )}
    </EntryDialog>
  )
}

/** An event for automations, and what they made of it. */
export function PublishedEntry({ id, close }: Opened): ReactNode {
  const { t } = useText()
  const { data, error } = usePublishedEvent(id)
  return (
    <EntryDialog id={id} entry={data} error={error} close={close} title={({ topic }) => topic}>
      {(event) => (
        <>
          <Moment at={event.published_at} />
          <EntryFact name={t('entry.topic')} value={event.topic} />
          <EntryFact name={t('entry.owner')} value={event.owner} />
          <Fact isFull name={t('entry.runs')}>
            <Heard runs={event.runs} />
          </Fact>
        </>
      )}
    </EntryDialog>
  )
}

/** All of them are in the whole entry. */
const RUNS_MAX = 50

function Heard({ runs }: Pick<PublishedBody, 'runs'>): ReactNode {
  const { t } = useText()
  if (runs === null) return t('entry.unheard')
  if (runs.length === 0) return t('entry.noRuns')
  return (
    <ul className="flex flex-col gap-1">
      {runs.slice(0, RUNS_MAX).map(({ automation_id: automation, run_id: run, outcome }) => (
        <li key={`${automation} ${run ?? ''}`} className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <SubjectLink subject={{ kind: 'automation', id: automation }} />
          {run === null ? null : <SubjectLink subject={{ kind: 'run', id: run }} />}
          <StatusBadge status={outcome} />
        </li>
      ))}
    </ul>
  )
}

/** A message to an endpoint, every try to send it, and what is sent. */
export function DeliveryEntry({ id, close }: Opened): ReactNode {
  const { t } = useText()
  const { data, error } = useDelivery(id)
  return (
    <EntryDialog id={id} entry={data} error={error} close={close} title={({ event }) => event}>
      {(delivery) => (
        <>
          <Moment at={delivery.created_at} />
          <Subjects of={[{ kind: 'job', id: delivery.job_id }]} />
          <EntryFact name={t('entry.owner')} value={delivery.owner} />
          <EntryFact name={t('entry.address')} value={delivery.url} />
          <EntryFact name={t('entry.tries')} value={delivery.attempts.length} />
          <EntryFact name={t('entry.remark')} value={delivery.note} />
        </>
      )}
    </EntryDialog>
  )
}
