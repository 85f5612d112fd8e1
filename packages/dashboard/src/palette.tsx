import { useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import type { ListedJobBody } from '@impresario/protocol'
import { useEffect, useId, useMemo, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { getPage } from './data/api.ts'
import { shortId } from './data/format.ts'
import { useBlueprints } from './data/queries.ts'
import { JobName } from './job/job-name.tsx'
import { ALL_PLACES } from './navigation.ts'
import { useText } from './text/text.tsx'
import { toggleTheme } from './theme.ts'
import { Icon } from './ui/icon.tsx'
import type { IconName } from './ui/icon.tsx'
import { StatusBadge } from './ui/status.tsx'

interface Choice {
  readonly id: string
  readonly title: string
  /** Of a job, which may have a better name. */
  readonly blueprint?: string
  readonly note?: string
  readonly icon: IconName
  readonly status?: string
  readonly act: () => void
}

/** Goes anywhere by typing: pages, blueprints, and jobs by any part of what they are found by. */
export function Palette({ close }: { readonly close: () => void }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null)
  const [query, setQuery] = useState('')
  const [place, setPlace] = useState(0)
  const { t } = useText()
  const list = useId()
  const choices = useChoices(query.trim(), close)
  const chosen = Math.min(place, choices.length - 1)
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  useEffect(() => {
    document.querySelector('[role="option"][aria-selected="true"]')?.scrollIntoView({ block: 'nearest' })
  }, [chosen])
  return (
    <dialog
      ref={dialog}
      aria-label={t('shell.search')}
      onCancel={close}
      onPointerDown={(event) => event.target === dialog.current && close()}
      className="mx-auto mt-[12vh] w-[calc(100vw-2rem)] max-w-xl overflow-hidden rounded-xl border border-line bg-panel p-0 text-ink shadow-2xl backdrop:bg-black/45"
    >
      <div className="flex items-center gap-2.5 border-b border-line px-4">
        <Icon name="search" className="size-4 text-faint" />
        <input
          autoFocus
          role="combobox"
          aria-expanded
          aria-controls={list}
          aria-activedescendant={choices[chosen] === undefined ? undefined : `${list}-${chosen}`}
          aria-label={t('palette.hint')}
          placeholder={t('palette.hint')}
          value={query}
          onChange={({ target }) => {
            setQuery(target.value)
            setPlace(0)
          }}
          onKeyDown={(event) => {
            if (event.key === 'ArrowDown') setPlace(Math.min(chosen + 1, choices.length - 1))
            else if (event.key === 'ArrowUp') setPlace(Math.max(chosen - 1, 0))
            else if (event.key === 'Enter') choices[chosen]?.act()
            else return
            event.preventDefault()
          }}
          className="h-12 min-w-0 flex-1 bg-transparent text-base outline-none placeholder:text-faint"
        />
      </div>
      <div id={list} role="listbox" aria-label={t('shell.search')} className="max-h-[50vh] overflow-y-auto p-2">
        {choices.map(({ id, title, blueprint, note, icon, status, act }, index) => (
          <div
            key={id}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onPointerMove={() => setPlace(index)}
            onClick={act}
            className="flex h-9 cursor-pointer items-center gap-2.5 rounded-md px-2.5 aria-selected:bg-raise"
          >
            <Icon name={icon} className="size-4 text-faint" />
            <span className="truncate">{blueprint === undefined ? title : <JobName blueprint={blueprint} />}</span>
            {note === undefined ? null : <span className="truncate text-faint">{note}</span>}
            {status === undefined ? null : (
              <span className="ml-auto">
                <StatusBadge status={status} />
              </span>
            )}
          </div>
        ))}
      </div>
      {choices.length === 0 ? <p className="px-4 pb-6 text-center text-soft">{t('palette.nothing')}</p> : null}
    </dialog>
  )
}

function useChoices(query: string, close: () => void): readonly Choice[] {
  const navigate = useNavigate()
  const { t } = useText()
  const { data: blueprints } = useBlueprints()
  const { data: jobs } = useQuery({
    queryKey: ['palette', query],
    queryFn: ({ signal }) =>
      getPage<ListedJobBody>(
        'jobs',
        { q: query, limit: 8, fields: 'job_id,blueprint_name,status,current_state' },
        signal,
      ),
    enabled: query.length >= 2,
    placeholderData: (before) => before,
  })
  return useMemo(() => {
    const go = (to: string, params?: Readonly<Record<string, string>>) => () => {
      close()
      void navigate({ to, ...(params === undefined ? {} : { params }) })
    }
    const fits = (text: string): boolean => text.toLowerCase().includes(query.toLowerCase())
    const pages = ALL_PLACES.map(({ to, title, icon }): Choice => ({ id: to, title: t(title), icon, act: go(to) }))
    const names = [...new Set(blueprints?.map(({ name }) => name))].map((name): Choice => ({
      id: `blueprint ${name}`,
      title: name,
      note: t('nav.blueprints'),
      icon: 'blueprint',
      act: go('/blueprints/$name', { name }),
    }))
    const theme: Choice = {
      id: 'theme',
      title: t('palette.theme'),
      icon: 'moon',
      act: () => {
        toggleTheme()
        close()
      },
    }
    const found = (query.length < 2 ? [] : (jobs?.items ?? [])).map((job): Choice => ({
      id: job.job_id,
      title: job.blueprint_name,
      blueprint: job.blueprint_name,
      note: shortId(job.job_id),
      icon: 'jobs',
      status: job.status,
      act: go('/jobs/$id', { id: job.job_id }),
    }))
    return [...[...pages, ...names, theme].filter(({ title }) => fits(title)), ...found]
  }, [query, jobs, blueprints, navigate, close, t])
}
