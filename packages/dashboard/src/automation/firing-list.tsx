import type { ReactNode } from 'react'
import type { PreviewBody } from '../data/automation-queries.ts'
import { absolute, wallTime } from '../data/format.ts'
import { firingWords } from '../text/firing-words.ts'
import { useText } from '../text/text.tsx'
import { Time } from '../ui/parts.tsx'

interface FiringRow {
  readonly at: number
  readonly local: string
  readonly notes: readonly string[]
  readonly isLeftOut: boolean
}

/** Firings and those that are left out, in the order of their times. */
export function firingRows(preview: PreviewBody | undefined): readonly FiringRow[] {
  return [
    ...(preview?.firings ?? []).map(({ at, local, notes }) => ({ at, local, notes, isLeftOut: false })),
    ...(preview?.left_out ?? []).map(({ at, local, reason }) => ({ at, local, notes: [reason], isLeftOut: true })),
  ].toSorted((a, b) => a.at - b.at)
}

export function FiringList({ preview }: { readonly preview: PreviewBody | undefined }): ReactNode {
  const { t, language } = useText()
  return (
    <ol>
      {firingRows(preview).map(({ at, local, notes, isLeftOut }) => (
        <li
          key={`${at} ${notes.join(' ')}`}
          className="flex items-center gap-3 border-b border-line px-4 py-2 last:border-b-0"
        >
          <span className={`num flex-1 ${isLeftOut ? 'text-faint line-through' : ''}`} title={absolute(at, language)}>
            {wallTime(local, language)}
          </span>
          <span className="text-xs text-warn">{notes.map((said) => firingWords(t, said)).join(' ')}</span>
          <Time at={at} className="text-xs text-faint" />
        </li>
      ))}
    </ol>
  )
}
