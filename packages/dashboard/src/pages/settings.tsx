import type { ReactNode } from 'react'
import { useAccount } from '../data/automation-queries.ts'
import { rootUrl } from '../data/api.ts'
import { useCounts, useReadiness } from '../data/queries.ts'
import { useText } from '../text/text.tsx'
import { Icon } from '../ui/icon.tsx'
import { JsonView } from '../ui/json.tsx'
import { Failure, Loading, PageHead, Panel } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'

export function SettingsPage(): ReactNode {
  const { t } = useText()
  const { data, error } = useReadiness()
  const account = useAccount()
  const { data: counts } = useCounts()
  return (
    <>
      <PageHead title={t('nav.settings')} note={t('settings.note')} />
      <div className="grid gap-4 xl:grid-cols-2">
        <Panel flush title={t('settings.health')} className="overflow-hidden">
          {error === null ? null : <Failure error={error} />}
          {data === undefined ? (
            <Loading rows={3} />
          ) : (
            <ul>
              {Object.entries(data.components).map(([name, { status, reason }]) => (
                <li key={name} className="flex items-center gap-3 border-b border-line px-4 py-2.5 last:border-b-0">
                  <span className="flex-1">
                    <span className="block font-medium">{name}</span>
                    <span className="block text-xs text-soft">{reason}</span>
                  </span>
                  <StatusBadge status={status} />
                </li>
              ))}
            </ul>
          )}
        </Panel>
        <Panel title={t('settings.account')}>
          {account.data === undefined ? (
            <Loading rows={3} />
          ) : (
            <JsonView value={account.data} label={t('settings.account')} />
          )}
        </Panel>
        {counts?.history === undefined ? null : (
          <Panel title={t('settings.history')}>
            <JsonView value={counts.history} label={t('settings.history')} />
          </Panel>
        )}
        <Panel flush title={t('settings.links')} className="overflow-hidden">
          <ul>
            {(
              [
                ['_public/docs', 'settings.docs'],
                ['_public/openapi.json', 'settings.openapi'],
                ['_public/ready', 'settings.ready'],
              ] as const
            ).map(([path, title]) => (
              <li key={path} className="border-b border-line last:border-b-0">
                <a href={rootUrl(path).href} className="flex items-center gap-2 px-4 py-2.5 hover:bg-raise">
                  <span className="flex-1 font-medium">{t(title)}</span>
                  <Icon name="external" className="size-3.5 text-faint" />
                </a>
              </li>
            ))}
          </ul>
        </Panel>
      </div>
    </>
  )
}
