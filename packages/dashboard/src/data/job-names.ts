import { useQuery } from '@tanstack/react-query'
import { useText } from '../text/text.tsx'
import { get, getPage } from './api.ts'
import { automationIn } from './automation-name.ts'
import { shortId } from './format.ts'

/** A part of a run of an automation is a job of this blueprint. */
const PART = 'automation-part'

interface Titled {
  readonly id: string
  readonly title: string
}

const FRESH_MS = 60_000

/** Asked for once for all rows of a list; one that is not among the newest is asked for by itself. */
function useTitle(id: string | undefined): string | undefined {
  const all = useQuery({
    queryKey: ['automations', 'titles'],
    queryFn: ({ signal }) => getPage<Titled>('automations', { limit: 100 }, signal),
    enabled: id !== undefined,
    staleTime: FRESH_MS,
    retry: false,
  })
  const listed = all.data?.items.find((one) => one.id === id)?.title
  const single = useQuery({
    queryKey: ['automation', id, 'title'],
    queryFn: ({ signal }) => get<Titled>(`automations/${encodeURIComponent(id ?? '')}`, {}, signal),
    enabled: id !== undefined && all.isFetched && listed === undefined,
    staleTime: FRESH_MS,
    retry: false,
  })
  return listed ?? single.data?.title
}

/** What people call jobs of this blueprint: the title of the automation whose runs they are, or the blueprint's own name. */
export function useJobName(blueprint: string): string {
  const { t } = useText()
  const automation = automationIn(blueprint)
  const title = useTitle(automation)
  if (blueprint === PART) return t('jobs.part')
  if (automation === undefined) return blueprint
  return title ?? t('jobs.automation', { id: shortId(automation) })
}
