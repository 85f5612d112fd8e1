import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useAutomations } from '../data/automation-queries.ts'
import { useAddress } from '../data/search.ts'
import { useMayCommand } from '../data/session.ts'
import { useText } from '../text/text.tsx'
import { whenWords } from '../text/when-words.ts'
import { LinkButton } from '../ui/button.tsx'
import { FilterSearch } from '../ui/filters.tsx'
import { PagedList } from '../ui/list.tsx'
import { PageHead, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'

export function AutomationsPage(): ReactNode {
  const { t, language } = useText()
  const [search] = useAddress()
  const mayCommand = useMayCommand()
  const pages = useAutomations({ search: search['q'] })
  return (
    <>
      <PageHead title={t('nav.automations')} note={t('automations.note')}>
        <FilterSearch label={t('automations.search')} />
        <LinkButton to="/automations/calendar" icon="clock">
          {t('calendar.title')}
        </LinkButton>
        {mayCommand ? (
          <LinkButton to="/automations/new" icon="plus" tone="primary">
            {t('editor.new')}
          </LinkButton>
        ) : null}
      </PageHead>
      <PagedList
        pages={pages}
        keyOf={({ id }) => id}
        icon="bolt"
        none={t('automations.none')}
        noneNote={t('automations.noneNote')}
        row={(one) => (
          <Link
            to="/automations/$id"
            params={{ id: one.id }}
            className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 hover:bg-raise"
          >
            <span className="min-w-0 flex-1 basis-60">
              <bdi className="block truncate font-semibold">{one.title}</bdi>
              <span className="block truncate text-xs text-soft">
                {whenWords(one.definition, one.when, { t, language }).join('; ') || t('automations.byEvent')}
              </span>
            </span>
            <span className="text-xs text-soft">{one.next_run_at === null ? '' : <Time at={one.next_run_at} />}</span>
            <StatusBadge status={one.status} />
          </Link>
        )}
      />
    </>
  )
}
