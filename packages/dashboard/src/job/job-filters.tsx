import { Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import type { ReactNode } from 'react'
import { useSavedViews } from '../data/saved-views.ts'
import { useAddress, withoutEmpty } from '../data/search.ts'
import { useSession } from '../data/session.ts'
import { BlueprintFilter, SinceFilter } from './common-filters.tsx'
import { COLUMNS, columnsIn, columnsText } from './job-columns.ts'
import { GROUPS, isGroup, isOldestFirst } from './job-query.ts'
import { useSay } from '../ui/toast.tsx'
import { useText } from '../text/text.tsx'
import { Button, IconButton } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Input, Select } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'

/** The address is the state: what is chosen here can be bookmarked, shared and gone back from. */
export function JobFilters(): ReactNode {
  const { t } = useText()
  const [search, change] = useAddress()
  const { session } = useSession()
  const shown = search['show'] ?? ''
  return (
    <div className="mb-3 flex flex-col gap-3">
      <div className="flex items-center gap-2">
        <div
          role="group"
          aria-label={t('jobs.column.status')}
          className="-ml-4 flex min-w-0 flex-1 gap-1 overflow-x-auto pl-4 md:ml-0 md:pl-0"
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
        <ColumnChoice />
        <SavedViews />
      </div>
      <div className="grid grid-cols-2 items-end gap-2 md:flex md:flex-wrap">
        <SearchBox />
        <div className="md:w-44">
          <BlueprintFilter />
        </div>
        <div className="md:w-44">
          <SinceFilter label={t('jobs.column.created')} />
        </div>
        <div className="md:w-44">
          <Select
            label={t('jobs.order')}
            isLabelHidden
            disabled={(search['q'] ?? '') !== ''}
            value={isOldestFirst(search) ? 'oldest' : ''}
            onChange={({ target }) => change({ order: target.value })}
          >
            <option value="">{t('jobs.order.newest')}</option>
            <option value="oldest">{t('jobs.order.oldest')}</option>
          </Select>
        </div>
        {session?.role === 'admin' ? <OwnerBox /> : null}
      </div>
    </div>
  )
}

const TYPING_MS = 250

function SearchBox(): ReactNode {
  const { t } = useText()
  return (
    <div className="relative col-span-2 min-w-60 flex-1">
      <Icon name="search" className="absolute top-2 left-2.5 size-4 text-faint" />
      <TypedFilter name="q" label={t('jobs.search')} type="search" className="pl-8" />
    </div>
  )
}

function OwnerBox(): ReactNode {
  const { t } = useText()
  return (
    <div className="md:w-32">
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

/** Narrow pages always show the same, so there is nothing to choose on a phone. */
function ColumnChoice(): ReactNode {
  const { t } = useText()
  const [search, change] = useAddress()
  const [isOpen, setOpen] = useState(false)
  const columns = columnsIn(search['columns'])
  return (
    <div className="hidden md:block">
      <Button icon="settings" onClick={() => setOpen(true)}>
        {t('columns.title')}
      </Button>
      {isOpen ? (
        <Dialog title={t('columns.title')} close={() => setOpen(false)}>
          <ul className="mb-4 grid grid-cols-2 gap-1">
            {COLUMNS.map((column) => (
              <li key={column}>
                <label className="flex cursor-pointer items-center gap-2 rounded-md px-2 py-1.5 hover:bg-raise">
                  <input
                    type="checkbox"
                    className="size-3.5 accent-(--fill)"
                    checked={columns.includes(column)}
                    disabled={columns.length === 1 && columns.includes(column)}
                    onChange={({ target }) => {
                      const others = columns.filter((one) => one !== column)
                      change({ columns: columnsText(target.checked ? [...others, column] : others) }, true)
                    }}
                  />
                  {t(`jobs.column.${column}`)}
                </label>
              </li>
            ))}
          </ul>
          <div className="flex justify-between gap-2">
            <Button tone="quiet" onClick={() => change({ columns: undefined }, true)}>
              {t('columns.reset')}
            </Button>
            <Button onClick={() => setOpen(false)}>{t('common.close')}</Button>
          </div>
        </Dialog>
      ) : null}
    </div>
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
                    remove(view.name).catch((error: unknown) => say(error, true))
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
                (error: unknown) => say(error, true),
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
