import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { ReactNode } from 'react'
import { useAudit, usePublished } from '../data/automation-queries.ts'
import { shortId } from '../data/format.ts'
import { useCounts, useEvents } from '../data/queries.ts'
import { useAddress } from '../data/search.ts'
import { AuditEntry, EventEntry, PublishedEntry } from '../event/entries.tsx'
import { useOpenEntry } from '../event/entry-dialog.tsx'
import { BlueprintFilter, SinceFilter } from '../job/common-filters.tsx'
import { secondsAgo } from '../job/job-query.ts'
import { EntryLink, useEntryKeys } from '../event/entry-row.tsx'
import { auditWords, EVENT_TYPES, eventWords } from '../text/event-words.ts'
import { useText } from '../text/text.tsx'
import { FilterSelect } from '../ui/filters.tsx'
import { PagedList } from '../ui/list.tsx'
import { NoHistory } from '../ui/no-history.tsx'
import { PageHead, Tabs, Time } from '../ui/parts.tsx'

const TABS = ['history', 'published', 'audit'] as const
type Tab = (typeof TABS)[number]
const ENTRIES = { history: EventEntry, published: PublishedEntry, audit: AuditEntry } as const

/** What happened: to jobs and workers, what was published, and who changed what. */
export function EventsPage(): ReactNode {
  const { t } = useText()
  const [search, change] = useAddress()
  const tab = TABS.find((one) => one === search['tab']) ?? 'history'
  const [open, close] = useOpenEntry()
  useEntryKeys()
  const Entry = ENTRIES[tab]
  return (
    <>
      <PageHead title={t('nav.events')} note={t('events.note')} />
      <div className="mb-3">
        <Tabs<Tab>
          label={t('nav.events')}
          chosen={tab}
          choose={(next) => change({ ...NO_FILTER, tab: next === 'history' ? undefined : next, entry: undefined })}
          tabs={TABS.map((one) => [one, t(`events.${one}`)])}
        />
      </div>
      {tab === 'history' ? <History /> : tab === 'published' ? <Published /> : <Audit />}
      {open === undefined ? null : <Entry key={open} id={open} close={close} />}
    </>
  )
}

const ROW = 'relative flex items-center gap-3 px-4 py-2 hover:bg-raise'
/** Lies above the link that opens the row. */
const ABOVE = 'relative z-1'

const NO_FILTER = { event: undefined, blueprint: undefined, since: undefined }

/** The address is the state, as with jobs. */
function Filters(): ReactNode {
  const { t, language } = useText()
  const types = EVENT_TYPES.map((type) => [type, eventWords(t, type)] as const).toSorted(([, a], [, b]) =>
    a.localeCompare(b, language),
  )
  return (
    <div className="mb-3 grid grid-cols-2 gap-2 md:flex">
      <div className="col-span-2 md:w-60">
        <FilterSelect name="event" label={t('nav.events')} any={t('events.any')} options={types} />
      </div>
      <div className="md:w-48">
        <BlueprintFilter />
      </div>
      <div className="md:w-48">
        <SinceFilter label={t('entry.time')} />
      </div>
    </div>
  )
}

function History(): ReactNode {
  const { t } = useText()
  const [search] = useAddress()
  const query = useMemo(() => {
    const after = secondsAgo(search['since'])
    return Object.fromEntries(
      Object.entries({ event: search['event'], blueprint: search['blueprint'], since: after }).filter(
        ([, value]) => value !== undefined,
      ),
    )
  }, [search])
  const { data: counts } = useCounts()
  const isKept = counts?.keeps_history !== false
  const pages = useEvents(query)
  const isFiltered = Object.keys(query).length > 0
  return (
    <>
      {isKept ? <Filters /> : null}
      <PagedList
        pages={pages}
        keyOf={({ event_id: id }) => id}
        icon="event"
        none={t(isFiltered ? 'events.noneFit' : 'events.none')}
        noneNote={isFiltered ? undefined : isKept ? t('events.noneNote') : <NoHistory />}
        row={(event) => (
          <div className={`${ROW} flex-wrap gap-y-0.5 sm:flex-nowrap`}>
            <EntryLink id={event.event_id} className="min-w-0 flex-1 basis-0 truncate sm:flex-none sm:basis-auto">
              {eventWords(t, event.event_type)}
            </EntryLink>
            <span aria-hidden="true" className="order-2 basis-full sm:hidden" />
            <bdi className="order-4 min-w-0 flex-1 truncate text-soft sm:order-none">
              {[event.blueprint, event.state, event.note].filter((part) => part !== null && part !== '').join(' · ')}
            </bdi>
            {event.job_id === null ? null : (
              <Link
                to="/jobs/$id"
                params={{ id: event.job_id }}
                className={`${ABOVE} order-3 font-mono text-xs text-accent hover:underline sm:order-none`}
              >
                {shortId(event.job_id)}
              </Link>
            )}
            {event.worker_id === null ? null : (
              <Link
                to="/workers/$id"
                params={{ id: event.worker_id }}
                className={`${ABOVE} hidden max-w-44 truncate text-xs text-accent hover:underline sm:inline`}
                title={event.worker_id}
              >
                <bdi>{event.worker_id}</bdi>
              </Link>
            )}
            <Time at={event.timestamp} className={`${ABOVE} order-1 text-faint sm:order-none`} />
          </div>
        )}
      />
    </>
  )
}

function Published(): ReactNode {
  const { t } = useText()
  return (
    <PagedList
      pages={usePublished({})}
      keyOf={({ id }) => id}
      icon="event"
      none={t('events.none')}
      noneNote={t('events.publishedNote')}
      row={(event) => (
        <div className={ROW}>
          <EntryLink id={event.id} className="max-w-1/2 truncate">
            <bdi>{event.topic}</bdi>
          </EntryLink>
          <bdi className="min-w-0 flex-1 truncate font-mono text-xs text-soft">
            {JSON.stringify(event.payload)?.slice(0, 300)}
          </bdi>
          <span className="text-xs text-soft">
            {event.runs === null ? '' : t('events.runs', { n: event.runs.length })}
          </span>
          <Time at={event.published_at} className={`${ABOVE} text-faint`} />
        </div>
      )}
    />
  )
}

function Audit(): ReactNode {
  const { t } = useText()
  return (
    <PagedList
      pages={useAudit({})}
      keyOf={({ id }) => id}
      icon="doc"
      none={t('events.none')}
      noneNote={t('events.auditNote')}
      row={(entry) => (
        <div className={`${ROW} flex-wrap gap-y-0.5 sm:flex-nowrap`}>
          <EntryLink id={entry.id} className="min-w-0 flex-1 basis-0 truncate sm:max-w-3/5 sm:flex-none sm:basis-auto">
            {auditWords(t, entry.action)}
          </EntryLink>
          <bdi className="order-last min-w-0 basis-full truncate text-soft sm:order-none sm:flex-1 sm:basis-auto">
            {entry.actor} · {entry.subject}
          </bdi>
          <Time at={entry.at} className={`${ABOVE} text-faint`} />
        </div>
      )}
    />
  )
}
