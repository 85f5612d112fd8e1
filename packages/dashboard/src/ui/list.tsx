import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Page } from '../data/api.ts'
import { useText } from '../text/text.tsx'
import { Button } from './button.tsx'
import type { IconName } from './icon.tsx'
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
  const { t } = useText()
  const { data, error, isPending, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = pages
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
      {hasNextPage ? (
        <div className="border-t border-line p-2 text-center">
          <Button
            tone="quiet"
            disabled={isFetchingNextPage}
            onClick={() => {
              void fetchNextPage()
            }}
          >
            {t('common.more')}
          </Button>
        </div>
      ) : null}
    </Panel>
  )
}
