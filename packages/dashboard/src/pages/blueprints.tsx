import type { wire } from '@impresario/client'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { ReactNode } from 'react'
import { useBlueprints } from '../data/queries.ts'
import { useText } from '../text/text.tsx'
import { Code, Empty, Failure, Loading, PageHead, Panel } from '../ui/parts.tsx'
import { Icon } from '../ui/icon.tsx'

export function BlueprintsPage(): ReactNode {
  const { t } = useText()
  const { data, error, isPending, refetch } = useBlueprints()
  const newest = useMemo(() => newestOf(data ?? []), [data])
  return (
    <>
      <PageHead title={t('nav.blueprints')} note={t('blueprints.note')} />
      {error === null ? null : <Failure error={error} retry={refetch} />}
      {isPending ? <Loading /> : null}
      {!isPending && newest.length === 0 ? (
        <Panel flush>
          <Empty icon="blueprint" title={t('blueprints.none')}>
            <p className="mb-3">{t('blueprints.noneNote')}</p>
            <Code>impresario dev --blueprints ./blueprints</Code>
          </Empty>
        </Panel>
      ) : null}
      <ul className="grid gap-3 sm:grid-cols-2 xl:grid-cols-3">
        {newest.map(({ name, version, states, versions }) => (
          <li key={name}>
            <Link
              to="/blueprints/$name"
              params={{ name }}
              className="flex h-full flex-col gap-2 rounded-xl border border-line bg-panel p-4 shadow-card hover:border-edge"
            >
              <span className="flex items-center gap-2">
                <Icon name="blueprint" className="size-4 text-faint" />
                <bdi className="min-w-0 flex-1 truncate text-base font-semibold">{name}</bdi>
                <span className="num rounded bg-raise px-1.5 text-xs text-soft">v{version}</span>
              </span>
              <span className="text-soft">
                {t('blueprints.states', { n: states.length })}
                {versions > 1 ? ` · ${t('blueprints.versions', { n: versions })}` : ''}
              </span>
              <span className="flex flex-wrap gap-1">
                {states.slice(0, 6).map((state) => (
                  <bdi
                    key={state.name}
                    className="max-w-full truncate rounded bg-raise px-1.5 py-0.5 text-xs text-soft"
                  >
                    {state.name}
                  </bdi>
                ))}
                {states.length > 6 ? (
                  <span className="px-1 py-0.5 text-xs text-faint">+{states.length - 6}</span>
                ) : null}
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </>
  )
}

function newestOf(all: readonly wire.BlueprintView[]): readonly (wire.BlueprintView & { readonly versions: number })[] {
  const found = new Map<string, wire.BlueprintView & { readonly versions: number }>()
  for (const one of all) {
    const known = found.get(one.name)
    const newest = known !== undefined && known.version > one.version ? known : one
    found.set(one.name, { ...newest, versions: (known?.versions ?? 0) + 1 })
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}
