import type { ReactNode } from 'react'
import { useText } from '../text/text.tsx'
import { Code } from './parts.tsx'

/** How a server gets a history. */
export function NoHistory(): ReactNode {
  const { t } = useText()
  return (
    <>
      <p className="mb-2 text-soft">{t('home.noHistory')}</p>
      <p className="text-soft">
        <Code>HISTORY_DATABASE_URI=sqlite:./impresario-data/history.db</Code>
      </p>
    </>
  )
}
