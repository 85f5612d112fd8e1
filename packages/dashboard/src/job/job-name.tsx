import type { ReactNode } from 'react'
import { useJobName } from '../data/job-names.ts'

/** What a job is called. */
export function JobName({
  blueprint,
  className = '',
}: {
  readonly blueprint: string
  readonly className?: string
}): ReactNode {
  return (
    <bdi className={className} title={blueprint}>
      {useJobName(blueprint)}
    </bdi>
  )
}
