import type { JobBody } from '@impresario/protocol'
import type { ReactNode } from 'react'
import { useText } from '../text/text.tsx'
import { JsonView } from '../ui/json.tsx'

/** What a job began with, what its states wrote, and what came of it. */
export function JobData({
  job,
  isRaw = false,
  children,
}: {
  readonly job: JobBody
  readonly isRaw?: boolean
  readonly children?: ReactNode
}): ReactNode {
  const { t } = useText()
  const parts: readonly (readonly [title: string, value: unknown])[] = isRaw
    ? [[t('job.tab.raw'), job]]
    : [
        [t('job.input'), job.initial_data],
        [t('job.stateHistory'), job.state_history],
        [t('job.result'), job.result],
        [t('job.metadata'), job.metadata],
      ]
  return (
    <div
      className="flex max-h-[34rem] flex-col overflow-y-auto"
      tabIndex={0}
      role="region"
      aria-label={t('job.tab.data')}
    >
      {parts
        .filter(([, value]) => value !== undefined)
        .map(([title, value]) => (
          <section key={title} className="border-b border-line px-4 py-3 last:border-b-0">
            {isRaw ? null : <h3 className="mb-1.5 text-xs font-medium text-faint">{title}</h3>}
            <JsonView value={value} label={title} />
          </section>
        ))}
      {children}
    </div>
  )
}
