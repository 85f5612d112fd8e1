import type { ReactNode } from 'react'
import { useText } from '../text/text.tsx'
import { LinkButton } from '../ui/button.tsx'
import { Empty } from '../ui/parts.tsx'

export function NotFound(): ReactNode {
  const { t } = useText()
  return (
    <Empty icon="search" title={t('notFound.title')} isPage>
      <p className="mb-4">{t('notFound.note')}</p>
      <LinkButton to="/">{t('nav.home')}</LinkButton>
    </Empty>
  )
}
