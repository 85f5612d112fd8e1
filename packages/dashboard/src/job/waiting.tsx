import type { wire } from '@impresario/client'
import type { JobBody } from '@impresario/protocol'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { shortId } from '../data/format.ts'
import { useExplanation } from '../data/queries.ts'
import { choiceWords, lackWords, scoreWords, waitWords } from '../text/reason-words.ts'
import { useText } from '../text/text.tsx'
import { Icon } from '../ui/icon.tsx'
import { Empty, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'
import { JobName } from './job-name.tsx'

/** Why a job does not move, in a sentence, with the first task that says why. */
export function WhyItWaits({ job }: { readonly job: JobBody }): ReactNode {
  const { t, language } = useText()
  const { data } = useExplanation(job.job_id, job.version)
  const { waits_for: wait } = job
  if (data === undefined || (data.summary === null && wait === undefined)) return null
  const stuck = data.tasks.find(({ where, explanation }) => where === 'waiting' && explanation !== null)
  return (
    <section className="rounded-xl border border-line bg-panel px-4 py-3 shadow-card" aria-label={t('job.why')}>
      <h2 className="flex items-center gap-2 text-sm font-semibold">
        <Icon name="clock" className="size-4 text-info" />
        {t('job.why')}
      </h2>
      <p className="mt-1 text-soft [overflow-wrap:anywhere]">
        <bdi>{stuck?.explanation ? choiceWords(t, stuck.explanation) : waitWords({ t, language }, data)}</bdi>
        {wait?.until === undefined ? null : (
          <>
            {' '}
            (<Time at={wait.until} className="text-ink" />)
          </>
        )}
      </p>
      {data.children.length === 0 ? null : (
        <ul className="mt-2 flex flex-wrap gap-2">
          {data.children.slice(0, 20).map(({ job_id: id, blueprint_name: name, status }) => (
            <li key={id}>
              <Link
                to="/jobs/$id"
                params={{ id }}
                className="flex items-center gap-2 rounded-lg border border-line px-2.5 py-1 hover:bg-raise"
              >
                <JobName blueprint={name} className="font-medium" />
                <span className="font-mono text-xs text-faint">{shortId(id)}</span>
                {status === null ? null : <StatusBadge status={status} />}
              </Link>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** Every task of the present state: where it is, and why there. */
export function TaskList({
  why,
  isOpen,
}: {
  readonly why: wire.ExplanationBody | undefined
  readonly isOpen: boolean
}): ReactNode {
  const { t } = useText()
  const tasks = why?.tasks ?? []
  if (tasks.length === 0 && !isOpen) return null
  if (tasks.length === 0) {
    return (
      <Empty icon="run" title={t('tasks.none')}>
        {t('tasks.noneNote')}
      </Empty>
    )
  }
  return (
    <ul className="max-h-[34rem] overflow-y-auto">
      {tasks.slice(0, 200).map((task) => (
        <Task key={task.task_id} task={task} isAlone={tasks.length === 1} />
      ))}
    </ul>
  )
}

const PLACES = {
  waiting: 'queued',
  assigned: 'waiting',
  running: 'busy',
  delayed: 'waiting_for_time',
  ended: 'finished',
} as const

function Task({ task, isAlone }: { readonly task: wire.ExplainedTaskBody; readonly isAlone: boolean }): ReactNode {
  const { t } = useText()
  const [isOpen, setOpen] = useState(isAlone)
  return (
    <li className="border-b border-line last:border-b-0">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center gap-3 px-4 py-2.5 text-left hover:bg-raise"
      >
        <Icon name={isOpen ? 'down' : 'right'} className="size-3.5 text-faint" />
        <span className="min-w-0 flex-1">
          <bdi className="block truncate font-medium">{task.type}</bdi>
          <span className="block truncate text-xs text-soft">
            {t('tasks.attempt', { n: task.attempt })}
            {task.worker === null ? '' : ` · ${task.worker}`}
          </span>
        </span>
        <StatusBadge status={PLACES[task.where]} />
      </button>
      {isOpen ? (
        <div className="px-4 pb-4 pl-10">
          {task.deadline === null ? null : (
            <p className="text-soft">
              {t('tasks.deadline')} <Time at={task.deadline} />
            </p>
          )}
          {task.last_error === null ? null : (
            <p className="mt-1 [overflow-wrap:anywhere] text-bad">
              {task.last_error.code}: <bdi>{task.last_error.message}</bdi>
            </p>
          )}
          {task.explanation === null ? null : <Choice choice={task.explanation} />}
        </div>
      ) : null}
    </li>
  )
}

/** Who could take it, how they compare, and what keeps the others out. */
function Choice({ choice }: { readonly choice: wire.ChoiceBody }): ReactNode {
  const { t } = useText()
  return (
    <div className="mt-2">
      <p className="mb-2">
        <bdi>{choiceWords(t, choice)}</bdi>
      </p>
      <div
        className="overflow-x-auto rounded-lg border border-line"
        tabIndex={0}
        role="region"
        aria-label={t('tasks.workers')}
      >
        <table className="w-full table-fixed text-left">
          <thead className="bg-raise/50 text-xs text-faint">
            <tr>
              <th className="w-2/5 px-3 py-1.5 font-medium">{t('tasks.worker')}</th>
              <th className="px-3 py-1.5 font-medium">{t('tasks.verdict')}</th>
            </tr>
          </thead>
          <tbody>
            {choice.workers.map((one) => (
              <tr key={one.worker_id} className="border-t border-line align-top">
                <td className="truncate px-3 py-1.5 font-medium" title={one.worker_id}>
                  <Link to="/workers/$id" params={{ id: one.worker_id }} className="hover:underline">
                    <bdi>{one.worker_id}</bdi>
                  </Link>
                </td>
                <td className="px-3 py-1.5 [overflow-wrap:anywhere]">
                  {one.verdict === 'candidate' ? (
                    <span className="text-ok">
                      {one.place === undefined ? t('tasks.candidate') : t('tasks.place', { n: one.place })}{' '}
                      <span className="text-soft">{scoreWords(t, one.score)}</span>
                    </span>
                  ) : (
                    <span className="text-soft">{lackWords(t, one.mismatches, one.reasons ?? [])}</span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {choice.omitted > 0 ? (
        <p className="mt-1 text-xs text-faint">{t('tasks.omitted', { n: choice.omitted })}</p>
      ) : null}
    </div>
  )
}
