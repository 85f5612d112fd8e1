import { Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import type { ReactNode } from 'react'
import type { Query } from '../data/api.ts'
import { useBlueprints } from '../data/queries.ts'
import { useSavedViews } from '../data/saved-views.ts'
import { useAddress, withoutEmpty } from '../data/search.ts'
import { useSession } from '../data/session.ts'
import type { Search } from '../router.tsx'
import { useSay } from '../ui/toast.tsx'
import { useText } from '../text/text.tsx'
import { Button, IconButton } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Input, Select } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'

/** Statuses by the question that somebody asks. */
export const GROUPS = {
  open: 'pending,running,waiting_for_worker,waiting_for_parallel,waiting_for_child,waiting_for_time,waiting_for_event,waiting_for_human',
  asking: 'waiting_for_human',
  quarantined: 'quarantined',
  finished: 'finished',
  failed: 'failed,error',
  cancelled: 'cancelled',
} as const
type Group = keyof typeof GROUPS

const SPANS: Readonly<Record<string, number>> = { hour: 3_600, day: 86_400, week: 604_800, month: 2_592_000 }

/** What the API is asked for an address. */
export function queryOf(search: Search): Query {
  const { show = '', blueprint, q, since = '', owner } = search
  const span = SPANS[since]
  // Whole minutes, so that the same address asks the same question for a while.
  const after = span === undefined ? undefined : Math.floor(Date.now() / 60_000) * 60 - span
  return Object.fromEntries(
    Object.entries({
      status: isGroup(show) ? GROUPS[show] : undefined,
      blueprint,
      q,
      owner,
      created_after: after,
    }).filter(([, value]) => value !== undefined),
  )
}

function isGroup(name: string): name is Group {
  return Object.hasOwn(GROUPS, name)
}

/** The address is the state: what is chosen here can be bookmarked, shared and gone back from. */
export function JobFilters(): ReactNode {
  const { t } = useText()
  const [search, change] = useAddress()
  const { data: blueprints } = useBlueprints()
  const { session } = useSession()
  const names = [...new Set(blueprints?.map(({ name }) => name))]
  const shown = search['show'] ?? ''
  return (
    <div className="mb-3 flex flex-col gap-3">
      <div
        role="group"
        aria-label={t('jobs.column.status')}
        className="-mx-4 flex gap-1 overflow-x-auto px-4 md:mx-0 md:px-0"
      >
        {(['', ...Object.keys(GROUPS)] as const).map((group) => (
          <button
            key={group}
            type="button"
            aria-pressed={shown === group}
            onClick={() => change({ show: group })}
            className="h-7 rounded-full border border-transparent px-3 font-medium whitespace-nowrap text-soft hover:bg-raise aria-pressed:border-line aria-pressed:bg-panel aria-pressed:text-ink aria-pressed:shadow-card"
          >
            {t(`jobs.show.${isGroup(group) ? group : 'all'}`)}
          </button>
        ))}
      </div>
      <div className="flex flex-wrap items-end gap-2">
        <SearchBox />
        <div className="w-40">
          <Select
            label={t('jobs.column.blueprint')}
            isLabelHidden
            value={search['blueprint'] ?? ''}
            onChange={({ target }) => change({ blueprint: target.value })}
          >
            <option value="">{t('jobs.anyBlueprint')}</option>
            {names.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </Select>
        </div>
        <div className="w-36">
          <Select
            label={t('jobs.column.created')}
            isLabelHidden
            value={search['since'] ?? ''}
            onChange={({ target }) => change({ since: target.value })}
          >
            <option value="">{t('jobs.anyTime')}</option>
            {(['hour', 'day', 'week', 'month'] as const).map((span) => (
              <option key={span} value={span}>
                {t(`jobs.since.${span}`)}
              </option>
            ))}
          </Select>
        </div>
        {session?.role === 'admin' ? <OwnerBox /> : null}
        <SavedViews />
      </div>
    </div>
  )
}

const TYPING_MS = 250

function SearchBox(): ReactNode {
  const { t } = useText()
  return (
    <div className="relative min-w-44 flex-1">
      <Icon name="search" className="absolute top-2 left-2.5 size-4 text-faint" />
      <TypedFilter name="q" label={t('jobs.search')} type="search" className="pl-8" />
    </div>
  )
}

function OwnerBox(): ReactNode {
  const { t } = useText()
  return (
    <div className="w-32">
      <TypedFilter name="owner" label={t('jobs.owner')} type="text" className="" />
    </div>
  )
}

/** The address follows when somebody stops typing; each word is not a step to go back over. */
function TypedFilter({
  name,
  label,
  type,
  className,
}: {
  readonly name: string
  readonly label: string
  readonly type: string
  readonly className: string
}): ReactNode {
  const [search, change] = useAddress()
  const given = search[name] ?? ''
  const [text, setText] = useState(given)
  useEffect(() => setText(given), [given])
  useEffect(() => {
    if (text === given) return
    const timer = setTimeout(() => change({ [name]: text }, true), TYPING_MS)
    return () => clearTimeout(timer)
  }, [text, given, name, change])
  return (
    <Input
      label={label}
      isLabelHidden
      type={type}
      placeholder={label}
      maxLength={200}
      value={text}
      onChange={({ target }) => setText(target.value)}
      className={className}
    />
  )
}

function SavedViews(): ReactNode {
  const { t } = useText()
  const [search] = useAddress()
  const say = useSay()
  const { views, save, remove } = useSavedViews()
  const [isOpen, setOpen] = useState(false)
  const [name, setName] = useState('')
  return (
    <>
      <Button icon="star" onClick={() => setOpen(true)}>
        {t('views.title')}
      </Button>
      {isOpen ? (
        <Dialog title={t('views.title')} close={() => setOpen(false)}>
          <ul className="mb-4 flex flex-col gap-1">
            {views.length === 0 ? <li className="text-soft">{t('views.none')}</li> : null}
            {views.map((view) => (
              <li key={view.name} className="flex items-center gap-2">
                <Link
                  to="/jobs"
                  search={view.search}
                  onClick={() => setOpen(false)}
                  className="min-w-0 flex-1 truncate rounded-md px-2 py-1.5 font-medium hover:bg-raise"
                >
                  {view.name}
                </Link>
                <IconButton
                  icon="trash"
                  label={`${t('views.remove')} ${view.name}`}
                  onClick={() => {
                    remove(view.name).catch((error: unknown) =>
                      say(error instanceof Error ? error.message : String(error), true),
                    )
                  }}
                />
              </li>
            ))}
          </ul>
          <form
            className="flex items-end gap-2 border-t border-line pt-4"
            onSubmit={(event) => {
              event.preventDefault()
              save(name.trim(), withoutEmpty(search)).then(
                () => setName(''),
                (error: unknown) => say(error instanceof Error ? error.message : String(error), true),
              )
            }}
          >
            <div className="flex-1">
              <Input
                label={t('views.name')}
                value={name}
                maxLength={60}
                required
                onChange={({ target }) => setName(target.value)}
              />
            </div>
            <Button type="submit" tone="primary" disabled={name.trim() === ''}>
              {t('views.save')}
            </Button>
          </form>
        </Dialog>
      ) : null}
    </>
  )
}
