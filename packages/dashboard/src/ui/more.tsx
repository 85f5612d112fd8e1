import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useText } from '../text/text.tsx'
import type { TextKey } from '../text/translate.ts'
import { Button } from './button.tsx'

/** The button below a list that reads its next page, as long as there is one. */
export function More({
  pages: { hasNextPage, isFetchingNextPage, fetchNextPage },
  label = 'common.more',
}: {
  readonly label?: TextKey
  readonly pages: Pick<UseInfiniteQueryResult, 'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage'>
}): ReactNode {
  const { t } = useText()
  if (!hasNextPage) return null
  return (
    <div className="border-t border-line p-2 text-center">
      <Button
        tone="quiet"
        disabled={isFetchingNextPage}
        onClick={() => {
          void fetchNextPage()
        }}
      >
        {t(isFetchingNextPage ? 'common.loading' : label)}
      </Button>
    </div>
  )
}
