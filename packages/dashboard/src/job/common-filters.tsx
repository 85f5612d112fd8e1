import type { ReactNode } from 'react'
import { useBlueprints } from '../data/queries.ts'
import { useText } from '../text/text.tsx'
import { FilterSelect } from '../ui/filters.tsx'
import { SPANS } from './job-query.ts'

/** Of all versions of a blueprint there is one choice. */
export function BlueprintFilter(): ReactNode {
  const { t } = useText()
  const { data: blueprints } = useBlueprints()
  const names = [...new Set(blueprints?.map(({ name }) => name))]
  return (
    <FilterSelect
      name="blueprint"
      label={t('jobs.column.blueprint')}
      any={t('jobs.anyBlueprint')}
      options={names.map((name) => [name, name])}
    />
  )
}

/** `label`: which time of the listed things it is. */
export function SinceFilter({ label }: { readonly label: string }): ReactNode {
  const { t } = useText()
  return (
    <FilterSelect
      name="since"
      label={label}
      any={t('jobs.anyTime')}
      options={SPANS.map((span) => [span, t(`jobs.since.${span}`)])}
    />
  )
}
