import type { HistoryBody } from '@impresario/protocol'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { ReactNode } from 'react'
import { duration } from '../data/format.ts'
import { useWorkers } from '../data/queries.ts'
import { priceOf, readWorker } from '../data/worker.ts'
import { useText } from '../text/text.tsx'
import { Empty, Time } from '../ui/parts.tsx'
import { attemptsOf } from './path.ts'
import type { Attempt } from './path.ts'

const SHOWN_MAX = 200

/** Every attempt of every task that has come to an end, the newest first. */
export function AttemptList({
  events,
  state,
  isOpen,
}: {
  readonly isOpen: boolean
  readonly events: readonly HistoryBody[]
  readonly state: string | undefined
}): ReactNode {
  const { t } = useText()
  const attempts = useMemo(
    () => attemptsOf(events).filter((one) => state === undefined || one.state === state),
    [events, state],
  )
  const costOf = useCosts()
  if (attempts.length === 0) return isOpen ? null : <Empty icon="run" title={t('tasks.never')} />
  return (
    <section aria-label={t('tasks.earlier')}>
      <h3 className="border-y border-line bg-raise/50 px-4 py-1.5 text-xs font-medium text-faint">
        {t('tasks.earlier')}
      </h3>
      <ul tabIndex={0} aria-label={t('tasks.earlier')} className="max-h-[24rem] overflow-y-auto">
        {attempts.slice(0, SHOWN_MAX).map((one) => (
          <Row key={one.id} attempt={one} cost={costOf(one)} />
        ))}
      </ul>
      {attempts.length > SHOWN_MAX ? (
        <p className="px-4 py-2 text-xs text-faint">{t('tasks.moreAttempts', { n: attempts.length - SHOWN_MAX })}</p>
      ) : null}
    </section>
  )
}

/** What an attempt has cost, by the present price of its worker: what it asked at that time is not kept. */
function useCosts(): (attempt: Attempt) => number | undefined {
  const { data } = useWorkers()
  const workers = useMemo(
    () => new Map(data?.pages.flatMap(({ items }) => items.map((body) => [body.worker_id, readWorker(body)]))),
    [data],
  )
  return ({ worker = '', type, seconds = 0 }) => {
    const known = workers.get(worker)
    const price = known === undefined ? undefined : priceOf(known, type)
    return price === undefined ? undefined : price * seconds
  }
}

function Row({ attempt, cost }: { readonly attempt: Attempt; readonly cost: number | undefined }): ReactNode {
  const { t, language } = useText()
  const { type, state, number, worker, seconds, at, isBad, note } = attempt
  return (
    <li className="border-b border-line px-4 py-2 last:border-b-0">
      <div className="flex items-baseline gap-x-3">
        <span aria-hidden="true" className={`size-2 shrink-0 rounded-full ${isBad ? 'bg-bad' : 'bg-ok'}`} />
        <bdi className="min-w-0 truncate font-medium" title={type}>
          {type}
        </bdi>
        <bdi className="min-w-0 truncate text-xs text-faint">{state}</bdi>
        <span className="num ml-auto shrink-0 text-soft">
          {seconds === undefined ? '' : duration(seconds * 1_000, language)}
        </span>
      </div>
      <div className="flex flex-wrap items-baseline gap-x-3 pl-5 text-xs">
        <span className="shrink-0 text-soft">
          {t(isBad ? 'tasks.attemptFailed' : 'tasks.attemptDone', { n: number ?? 1 })}
        </span>
        {worker === undefined ? null : (
          <Link to="/workers/$id" params={{ id: worker }} className="min-w-0 truncate text-accent hover:underline">
            <bdi title={worker}>{worker}</bdi>
          </Link>
        )}
        {cost === undefined ? null : (
          <span className="num shrink-0 text-faint" title={t('tasks.costNote')}>
            {t('tasks.cost', { cost: new Intl.NumberFormat(language, { maximumSignificantDigits: 2 }).format(cost) })}
          </span>
        )}
        <Time at={at} className="ml-auto shrink-0 text-faint" />
      </div>
      {isBad && note !== undefined ? (
        <bdi className="mt-0.5 block pl-5 [overflow-wrap:anywhere] text-bad">{note}</bdi>
      ) : null}
    </li>
  )
}
