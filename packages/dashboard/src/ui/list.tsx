import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Page } from '../data/api.ts'
import type { IconName } from './icon.tsx'
import { More } from './more.tsx'
import { Empty, Failure, Loading, Panel } from './parts.tsx'

/** A list that is read page by page, with a word for when there is nothing in it. */
export function PagedList<T>({
  pages,
  row,
  keyOf,
  icon,
  none,
  noneNote,
}: {
  readonly pages: UseInfiniteQueryResult<InfiniteData<Page<T>>>
  readonly row: (item: T) => ReactNode
  readonly keyOf: (item: T) => string
  readonly icon: IconName
  readonly none: string
  readonly noneNote?: ReactNode
}): ReactNode {
  const { data, error, isPending, refetch } = pages
  const items = data?.pages.flatMap(({ items: of }) => of) ?? []
  if (error !== null) return <Failure error={error} retry={refetch} />
  return (
    <Panel flush className="overflow-hidden">
      {isPending ? <Loading /> : null}
      {!isPending && items.length === 0 ? (
        <Empty icon={icon} title={none}>
          {noneNote}
        </Empty>
      ) : null}
      <ul>
        {items.map((item) => (
          <li key={keyOf(item)} className="border-b border-line last:border-b-0">
            {row(item)}
          </li>
        ))}
      </ul>
      <More pages={pages} />
    </Panel>
  )
}
