import type { wire } from '@impresario/client'
import type { ReactNode } from 'react'
import { useAccount } from '../data/automation-queries.ts'
import { bytes, duration } from '../data/format.ts'
import { rootUrl } from '../data/places.ts'
import { useReadiness } from '../data/queries.ts'
import { useSystem } from '../data/server-queries.ts'
import { useText } from '../text/text.tsx'
import type { TextKey } from '../text/translate.ts'
import { en } from '../text/en.ts'
import { Icon } from '../ui/icon.tsx'
import { Bar, Code, CopyButton, Fact, Failure, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'

/** What the server is and how it is, and who looks at it. Admins see more of it. */
export function SettingsPage(): ReactNode {
  const { t } = useText()
  const { data: system, error } = useSystem()
  const account = useAccount()
  return (
    <>
      <PageHead title={t('nav.settings')} note={t('settings.note')} />
      {error === null ? null : (
        <div className="mb-4">
          <Failure error={error} />
        </div>
      )}
      <div className="gap-4 *:mb-4 *:break-inside-avoid xl:columns-2">
        <Health />
        {system === undefined ? null : (
          <>
            <Server system={system} />
            <StoragePanel system={system} />
            <Instances instances={system.instances} />
            <Leads leads={system.leads} />
          </>
        )}
        <Panel title={t('settings.account')}>
          {account.data === undefined ? <Loading rows={3} /> : <Account account={account.data} />}
        </Panel>
        {system === undefined && account.data === undefined ? null : (
          <Limits limits={system?.limits ?? account.data?.limits} />
        )}
        <Links />
      </div>
    </>
  )
}

/** The text of a name that comes from the server; one that this version does not know is shown as it is. */
function useNamed(): (kind: string, name: string) => string {
  const { t } = useText()
  return (kind, name) => {
    const key = `${kind}.${name}`
    return isText(key) ? t(key) : name
  }
}

function isText(key: string): key is TextKey {
  return Object.hasOwn(en, key)
}

function Health(): ReactNode {
  const { t } = useText()
  const named = useNamed()
  const { data, error } = useReadiness()
  return (
    <Panel flush title={t('settings.health')} className="overflow-hidden">
      {error === null ? null : <Failure error={error} />}
      {data === undefined ? (
        <Loading rows={3} />
      ) : (
        <ul>
          {Object.entries(data.components).map(([name, { status, reason }]) => (
            <li key={name} className="flex items-center gap-3 border-b border-line px-4 py-2.5 last:border-b-0">
              <span className="min-w-0 flex-1">
                <span className="block font-medium">{named('settings.component', name)}</span>
                {reason === undefined || reason === null ? null : (
                  <span className="block text-xs text-soft">{reason}</span>
                )}
              </span>
              <StatusBadge status={status} />
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

function Server({ system }: { readonly system: wire.SystemBody }): ReactNode {
  const { t } = useText()
  return (
    <Panel title={t('settings.server')}>
      <dl className="grid grid-cols-2 gap-4 sm:grid-cols-3">
        <Fact name={t('settings.version')}>
          <span className="num">{system.version}</span>
        </Fact>
        <Fact name="Node.js">
          <span className="num">{system.node_version}</span>
        </Fact>
        <Fact name={t('settings.platform')}>{system.platform}</Fact>
        <Fact name={t('settings.instance')}>
          <bdi>{system.instance_id}</bdi>
        </Fact>
        <Fact name={t('settings.started')}>
          <Time at={system.started_at} />
        </Fact>
        <Fact name={t('settings.zone')}>{system.time_zone}</Fact>
        <Fact name={t('settings.zoneData')}>{system.time_zone_data ?? t('settings.unknown')}</Fact>
      </dl>
    </Panel>
  )
}

const PROMISE_TONES = { always: 'text-ok', everysec: 'text-warn', none: 'text-warn', unknown: 'text-warn' } as const

function StoragePanel({ system: { storage, history } }: { readonly system: wire.SystemBody }): ReactNode {
  const { t, language } = useText()
  const numbers = new Intl.NumberFormat(language)
  return (
    <Panel title={t('settings.storage')}>
      <dl className="grid grid-cols-2 gap-4">
        <Fact name={t('settings.kind')}>{t(`settings.kind.${storage.kind}`)}</Fact>
        <Fact name={t('settings.instances')}>{t(storage.is_shared ? 'settings.shared' : 'settings.alone')}</Fact>
        <Fact isWide name={t('settings.address')}>
          <Code>{storage.address}</Code>
        </Fact>
        <Fact isWide name={t('settings.promise')}>
          <span className="flex items-start gap-2">
            <Icon
              name={storage.promise === 'always' ? 'check' : 'alert'}
              className={`mt-0.5 size-4 shrink-0 ${PROMISE_TONES[storage.promise]}`}
            />
            {t(
              storage.kind === 'memory' || storage.promise !== 'none'
                ? `settings.promise.${storage.promise}`
                : 'settings.promise.weak',
            )}
          </span>
          {storage.doubts.length === 0 ? null : (
            <ul className="mt-2 ml-6 list-disc space-y-1 text-xs text-soft">
              {storage.doubts.map((doubt) => (
                <li key={doubt}>{doubt}</li>
              ))}
            </ul>
          )}
          {storage.promise === 'always' || storage.kind === 'memory' ? null : (
            <p className="mt-2 ml-6 text-xs text-soft">{t('settings.strict')}</p>
          )}
        </Fact>
      </dl>
      <h3 className="mt-5 mb-3 border-t border-line pt-4 text-sm font-semibold">{t('settings.history')}</h3>
      {history.is_away ? <p className="mb-3 text-bad">{t('settings.away')}</p> : null}
      <dl className="grid grid-cols-2 gap-4 sm:grid-cols-3">
        <Fact name={t('settings.events')}>{t(history.is_complete ? 'settings.eventsAll' : 'settings.eventsFew')}</Fact>
        <Fact name={t('settings.unwritten')}>
          <span className="num">{numbers.format(history.waiting)}</span>
        </Fact>
        <Fact name={t('settings.lost')}>
          <span className={`num ${history.dropped > 0 ? 'text-bad' : ''}`}>{numbers.format(history.dropped)}</span>
        </Fact>
      </dl>
    </Panel>
  )
}

function Instances({ instances }: { readonly instances: wire.SystemBody['instances'] }): ReactNode {
  const { t } = useText()
  const named = useNamed()
  return (
    <Panel flush title={t('settings.instances')} className="overflow-hidden">
      <ul>
        {instances.map((one) => (
          <li
            key={`${one.instance_id} ${one.started_at}`}
            className="flex flex-wrap items-start gap-x-3 gap-y-1 border-b border-line px-4 py-2.5 last:border-b-0"
          >
            <span className="min-w-0 flex-1 basis-56">
              <span className="flex flex-wrap items-center gap-2">
                <bdi className="font-medium [overflow-wrap:anywhere]">{one.instance_id}</bdi>
                {one.is_this ? (
                  <span className="rounded bg-raise px-1.5 py-0.5 text-xs text-soft">{t('settings.thisOne')}</span>
                ) : null}
              </span>
              <span className="block text-xs text-soft">
                {t('settings.version')} <span className="num">{one.version}</span> · {t('settings.since')}{' '}
                <Time at={one.started_at} />
              </span>
              <span className="block text-xs text-soft">
                {one.leads.length === 0
                  ? t('settings.leadsNothing')
                  : one.leads.map((name) => named('settings.lead', name)).join(' · ')}
              </span>
            </span>
            <span className="flex flex-col items-end gap-1">
              <StatusBadge status={one.status} />
              {one.is_this ? null : (
                <span className="text-xs text-soft">
                  {t('settings.seen')} <Time at={one.last_seen_at} />
                </span>
              )}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

const LED_TONES = {
  this_instance: 'text-ok bg-ok-tint',
  another_instance: 'text-info bg-info-tint',
  nobody: 'text-dim bg-dim-tint',
} as const

function Leads({ leads }: { readonly leads: wire.SystemBody['leads'] }): ReactNode {
  const { t } = useText()
  const named = useNamed()
  return (
    <Panel flush title={t('settings.leads')} className="overflow-hidden">
      <p className="px-4 pt-3 pb-1 text-soft">{t('settings.leadsNote')}</p>
      <ul>
        {leads.map(({ process, led_by: by, instance_id: instance }) => (
          <li key={process} className="flex items-center gap-3 border-b border-line px-4 py-2.5 last:border-b-0">
            <span className="min-w-0 flex-1">
              <span className="block font-medium">{named('settings.lead', process)}</span>
              <span className="block font-mono text-xs text-faint">{process}</span>
            </span>
            <span
              className={`inline-flex h-5.5 items-center rounded-full px-2 text-xs font-medium whitespace-nowrap ${LED_TONES[by]}`}
            >
              {by === 'another_instance' && instance !== null ? <bdi>{instance}</bdi> : t(`settings.by.${by}`)}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function Account({ account }: { readonly account: wire.AccountBody }): ReactNode {
  const { t, language } = useText()
  const numbers = new Intl.NumberFormat(language)
  const { quota } = account
  return (
    <dl className="grid grid-cols-2 gap-4">
      <Fact name={t('settings.client')}>
        <span className="flex items-center gap-1">
          <bdi className="font-medium">{account.client_id}</bdi>
          <CopyButton text={account.client_id} label={t('common.copy')} />
        </span>
      </Fact>
      <Fact name={t('settings.role')}>{t(`role.${account.role}`)}</Fact>
      {account.plan === null ? null : <Fact name={t('settings.plan')}>{account.plan}</Fact>}
      {account.on_behalf_of === null ? null : <Fact name={t('agents.person')}>{account.on_behalf_of}</Fact>}
      {account.scopes === null ? null : (
        <Fact isWide name={t('agents.scopes')}>
          {account.scopes.join(', ') || t('agents.noScopes')}
        </Fact>
      )}
      {quota === null ? null : (
        <>
          <Fact name={t('settings.quota', { period: quota.period })}>
            <span className="num">
              {t('settings.quotaValue', { used: numbers.format(quota.used), limit: numbers.format(quota.limit) })}
            </span>
            <Bar
              value={quota.limit === 0 ? 1 : quota.used / quota.limit}
              label={t('settings.quota', { period: quota.period })}
              tone={quota.left === 0 ? 'bg-bad' : 'bg-fill'}
            />
          </Fact>
          <Fact name={t('settings.renews')}>
            <Time at={Date.parse(quota.renews_at) / 1_000} />
          </Fact>
        </>
      )}
    </dl>
  )
}

type AnyLimits = wire.AccountBody['limits'] & Partial<wire.SystemBody['limits']>

function Limits({ limits }: { readonly limits: AnyLimits | undefined }): ReactNode {
  const { t, language } = useText()
  if (limits === undefined) return null
  const number = (value: number): string => new Intl.NumberFormat(language).format(value)
  const span = (seconds: number): string => duration(seconds * 1_000, language)
  const days = (value: number | null): string => (value === null ? t('settings.forever') : span(value * 86_400))
  const { requests } = limits
  const rows: readonly (readonly [TextKey, string | undefined])[] = [
    ['settings.limit.body', bytes(limits.body_bytes, language)],
    ['settings.limit.batch', number(limits.batch_items)],
    ['settings.limit.page', number(limits.page_size)],
    [
      'settings.limit.rate',
      requests === null
        ? t('settings.noLimit')
        : t('settings.limit.rateValue', { n: requests.limit, span: span(requests.period_seconds) }),
    ],
    ['settings.limit.open', mapped(limits.open_jobs, number)],
    ['settings.limit.openClient', mapped(limits.open_jobs_per_client, number)],
    ['settings.limit.transitions', mapped(limits.transitions_per_job, number)],
    ['settings.limit.attempts', mapped(limits.attempts, number)],
    ['settings.limit.jobs', mapped(limits.job_retention_days, days)],
    ['settings.limit.events', mapped(limits.history_retention_days, days)],
    ['settings.limit.keys', mapped(limits.idempotency_key_hours, (hours) => span(hours * 3_600))],
    ['settings.limit.silence', mapped(limits.worker_silence_seconds, span)],
  ]
  return (
    <Panel flush title={t('settings.limits')} className="overflow-hidden">
      <dl>
        {rows.map(([name, value]) =>
          value === undefined ? null : (
            <div key={name} className="flex items-baseline gap-3 border-b border-line px-4 py-2 last:border-b-0">
              <dt className="min-w-0 flex-1 text-soft">{t(name)}</dt>
              <dd className="num text-right font-medium">{value}</dd>
            </div>
          ),
        )}
      </dl>
    </Panel>
  )
}

function mapped<T>(value: T | undefined, say: (value: T) => string): string | undefined {
  return value === undefined ? undefined : say(value)
}

function Links(): ReactNode {
  const { t } = useText()
  return (
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
  )
}
