import { Link } from '@tanstack/react-router'
import { useEffect } from 'react'
import type { ReactNode } from 'react'
import { ApiError } from '../data/api.ts'
import { absolute, shortId } from '../data/format.ts'
import { useJobName } from '../data/job-names.ts'
import { useAddress } from '../data/search.ts'
import { useIsAdmin } from '../data/session.ts'
import { useText } from '../text/text.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { JsonView } from '../ui/json.tsx'
import { Empty, Fact, Failure, Loading, Time } from '../ui/parts.tsx'
import type { Subject } from './entry-links.ts'
import { focusEntry } from './entry-row.tsx'

/** The entry that the address names, if it does. */
export function useOpenEntry(): readonly [id: string | undefined, close: () => void] {
  const [search, change] = useAddress()
  const { entry } = search
  return [entry, () => change({ entry: undefined }, true)]
}

/** A whole entry: what it says in words, what it is about, and all of it as it is kept. */
export function EntryDialog<T>({
  id,
  entry,
  error,
  title,
  close,
  children,
  below = () => null,
}: {
  readonly id: string
  readonly entry: T | undefined
  readonly error: Error | null
  readonly title: (entry: T) => string
  readonly close: () => void
  readonly children: (entry: T) => ReactNode
  /** Below the facts: what can be done with it. */
  readonly below?: (entry: T) => ReactNode
}): ReactNode {
  const { t } = useText()
  useEffect(() => () => focusEntry(id), [id])
  return (
    <Dialog isWide title={entry === undefined ? t('entry.whole') : title(entry)} close={close}>
      {entry === undefined ? (
        <Missing error={error} />
      ) : (
        <>
          <dl className="mb-4 grid grid-cols-2 gap-x-4 gap-y-3 sm:grid-cols-3">{children(entry)}</dl>
          {below(entry)}
          <h3 className="mb-1 border-t border-line pt-3 text-xs font-medium text-faint">{t('entry.whole')}</h3>
          <JsonView value={entry} label={t('entry.whole')} />
        </>
      )}
    </Dialog>
  )
}

function Missing({ error }: { readonly error: Error | null }): ReactNode {
  const { t } = useText()
  if (error === null) return <Loading rows={3} />
  const isGone = error instanceof ApiError && [400, 404].includes(error.status)
  return isGone ? <Empty icon="search" title={t('entry.gone')} /> : <Failure error={error} />
}

/** A fact, where there is one. */
export function EntryFact({
  name,
  value,
}: {
  readonly name: string
  readonly value: string | number | null
}): ReactNode {
  if (value === null || value === '') return null
  const text = String(value)
  return (
    <Fact name={name}>
      <bdi>{text.length > FACT_CHARS_MAX ? `${text.slice(0, FACT_CHARS_MAX)}…` : text}</bdi>
    </Fact>
  )
}

/** The whole text is below, with all the rest. */
const FACT_CHARS_MAX = 300

export function Moment({ at }: { readonly at: number }): ReactNode {
  const { t, language } = useText()
  return (
    <Fact name={t('entry.time')}>
      <span className="num">{absolute(at, language)}</span> <Time at={at} className="text-xs text-faint" />
    </Fact>
  )
}

const PLACES = {
  job: '/jobs/$id',
  run: '/runs/$id',
  automation: '/automations/$id',
  worker: '/workers/$id',
  agent: '/agents/$id',
} as const

/** Links to what an entry is about. */
export function Subjects({ of: subjects }: { readonly of: readonly Subject[] }): ReactNode {
  const { t } = useText()
  // Others may not see agents.
  const isAdmin = useIsAdmin()
  return subjects
    .filter(({ kind }) => kind !== 'agent' || isAdmin)
    .map((subject) => (
      <Fact key={`${subject.kind} ${subject.id}`} name={t(`entry.${subject.kind}`)}>
        <SubjectLink subject={subject} />
      </Fact>
    ))
}

const LINK = 'text-accent hover:underline'

export function SubjectLink({ subject: { kind, id } }: { readonly subject: Subject }): ReactNode {
  const title = useJobName(kind === 'automation' ? `automation/${id}` : id)
  if (kind === 'blueprint') {
    return (
      <Link to="/blueprints/$name" params={{ name: id }} className={LINK}>
        <bdi>{id}</bdi>
      </Link>
    )
  }
  if (kind === 'event') {
    return (
      <Link to="/events" search={{ tab: 'published', entry: id }} className={`${LINK} font-mono text-xs`}>
        {shortId(id)}
      </Link>
    )
  }
  const isNamed = kind === 'worker' || kind === 'automation'
  return (
    <Link to={PLACES[kind]} params={{ id }} title={id} className={`${LINK} ${isNamed ? '' : 'font-mono text-xs'}`}>
      <bdi>{kind === 'automation' ? title : kind === 'worker' ? id : shortId(id)}</bdi>
    </Link>
  )
}
