import type { JobBody, LogLineBody } from '@impresario/protocol'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { absolute, clockTime } from '../data/format.ts'
import { useJobLog } from '../data/queries.ts'
import { useText } from '../text/text.tsx'
import { written } from '../ui/json.tsx'
import { Empty, Failure, Loading } from '../ui/parts.tsx'

const LEVELS = ['debug', 'info', 'warn', 'error'] as const
type Level = (typeof LEVELS)[number]

const TONES: Readonly<Record<Level, string>> = {
  debug: 'text-faint',
  info: 'text-soft',
  warn: 'text-warn',
  error: 'text-bad',
}

/** What handlers and workers wrote about the job, oldest first. */
export function JobLog({
  job,
  state,
}: {
  readonly job: JobBody
  /** Only the lines of this state's handler. */
  readonly state: string | undefined
}): ReactNode {
  const { t } = useText()
  const [least, setLeast] = useState<Level>('debug')
  const { data: lines, error, refetch } = useJobLog(job.job_id, job.ended_at === undefined)
  if (error !== null) return <Failure error={error} retry={refetch} />
  if (lines === undefined) return <Loading rows={4} />
  if (lines.length === 0) {
    return (
      <Empty icon="event" title={t('log.none')}>
        {t('log.noneNote')}
      </Empty>
    )
  }
  const shown = lines.filter(
    ({ level, state: of }) =>
      LEVELS.indexOf(level) >= LEVELS.indexOf(least) && (state === undefined || of === undefined || of === state),
  )
  return (
    <>
      <div className="flex items-center gap-2 border-b border-line px-4 py-2 text-soft">
        <label className="flex items-center gap-2">
          {t('log.least')}
          <select
            value={least}
            onChange={({ target }) => setLeast(LEVELS.find((one) => one === target.value) ?? 'debug')}
            className="h-7 rounded-md border border-line bg-panel px-1"
          >
            {LEVELS.map((level) => (
              <option key={level} value={level}>
                {level}
              </option>
            ))}
          </select>
        </label>
        <span className="num ml-auto text-xs text-faint">{t('log.lines', { n: shown.length })}</span>
      </div>
      <ol
        tabIndex={0}
        aria-label={t('job.tab.log')}
        className="max-h-[34rem] overflow-y-auto py-1 font-mono text-xs leading-5"
      >
        {shown.map((line, index) => (
          <Line key={`${line.timestamp} ${index}`} line={line} />
        ))}
      </ol>
    </>
  )
}

function Line({ line }: { readonly line: LogLineBody }): ReactNode {
  const { language } = useText()
  const { timestamp, level, message, source, state, worker_id: worker, fields } = line
  const from = source === 'handler' ? state : worker
  return (
    <li className="grid grid-cols-[6.5rem_3rem_minmax(0,1fr)] gap-x-2 px-4 py-0.5 hover:bg-raise">
      <time className="num text-faint" title={absolute(timestamp, language)}>
        {clockTime(timestamp, language)}
      </time>
      <span className={`font-semibold ${TONES[level]}`}>{level}</span>
      <span className="[overflow-wrap:anywhere] whitespace-pre-wrap">
        {from === undefined ? null : <bdi className="mr-2 rounded bg-raise px-1 text-soft">{from}</bdi>}
        <bdi>{message}</bdi>
        {fields === undefined ? null : <span className="ml-2 text-faint">{written(fields, 0)}</span>}
      </span>
    </li>
  )
}
