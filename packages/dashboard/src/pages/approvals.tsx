import type { ListedJobBody, WireApproval } from '@impresario/protocol'
import { useEffect, useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { useJobs } from '../data/queries.ts'
import { useAddress } from '../data/search.ts'
import { ApprovalCard } from '../job/approval-card.tsx'
import { questionKey } from '../job/ignored.ts'
import { useIgnored } from '../job/use-ignored.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { useKeys } from '../ui/keys.tsx'
import { Empty, Failure, Loading, PageHead, Panel } from '../ui/parts.tsx'
import { useSay } from '../ui/toast.tsx'

/** The inbox: what jobs ask people. What somebody ignores is kept aside, for that person. */
export function ApprovalsPage(): ReactNode {
  const { t } = useText()
  const [search, change] = useAddress()
  const isAside = search['show'] === 'ignored'
  const { data, error, isPending, isFetchingNextPage, hasNextPage, fetchNextPage, refetch } = useJobs({
    status: 'waiting_for_human',
  })
  const { isIgnored } = useIgnored()
  const all = useMemo(() => (data?.pages.flatMap(({ items }) => items) ?? []).flatMap(questionOf), [data])
  const ignored = all.filter(({ key }) => isIgnored(key))
  const shown = isAside ? ignored : all.filter(({ key }) => !isIgnored(key))
  const isMissing = shown.length === 0 && hasNextPage
  // A page of which nothing is shown says nothing about the next one.
  useEffect(() => {
    if (isMissing && !isFetchingNextPage) void fetchNextPage()
  }, [isMissing, isFetchingNextPage, fetchNextPage])
  return (
    <div className="mx-auto max-w-3xl">
      <PageHead title={t('nav.approvals')} note={t(isAside ? 'approvals.ignoredNote' : 'approvals.note')}>
        {isAside || ignored.length > 0 ? (
          <Button
            icon="hidden"
            aria-pressed={isAside}
            className="aria-pressed:border-accent aria-pressed:text-accent"
            onClick={() => change({ show: isAside ? '' : 'ignored' })}
          >
            {t('approvals.ignored')}
            <span className="num rounded-full bg-raise px-1.5 text-xs text-ink">{ignored.length}</span>
          </Button>
        ) : null}
      </PageHead>
      {error === null ? null : <Failure error={error} retry={refetch} />}
      {isPending || isMissing ? <Loading rows={4} /> : null}
      {!isPending && !isMissing && shown.length === 0 ? (
        <Panel flush>
          <Empty icon="check" title={t(isAside ? 'approvals.noneIgnored' : 'approvals.none')}>
            {isAside ? null : t('approvals.noneNote')}
          </Empty>
        </Panel>
      ) : null}
      <Questions questions={shown} />
      {hasNextPage && !isMissing ? (
        <div className="mt-3 text-center">
          <Button
            onClick={() => {
              void fetchNextPage()
            }}
          >
            {t('common.more')}
          </Button>
        </div>
      ) : null}
    </div>
  )
}

interface Question {
  readonly key: string
  readonly job: ListedJobBody
  readonly approval: WireApproval
}

function questionOf(job: ListedJobBody): readonly Question[] {
  const { approval } = job
  return approval === undefined ? [] : [{ key: questionKey(job.job_id, approval.visit), job, approval }]
}

/** One of them has the keys; `j` and `k` lead to the others. */
function Questions({ questions }: { readonly questions: readonly Question[] }): ReactNode {
  const { t } = useText()
  const say = useSay()
  const { isIgnored, ignore, restore } = useIgnored()
  const [place, setPlace] = useState(0)
  const active = Math.min(place, Math.max(0, questions.length - 1))
  const keys = useMemo(
    () => ({
      j: () => setPlace(Math.min(active + 1, questions.length - 1)),
      k: () => setPlace(Math.max(active - 1, 0)),
    }),
    [active, questions.length],
  )
  useKeys(keys)
  const toggle = (key: string): void => {
    const wasIgnored = isIgnored(key)
    if (wasIgnored) restore(key)
    else ignore(key)
    say(t(wasIgnored ? 'approvals.restored' : 'approvals.ignoredDone'))
  }
  return (
    <ul className="flex flex-col gap-3">
      {questions.map(({ key, job, approval }, index) => (
        <li key={key}>
          <ApprovalCard
            job={job}
            approval={approval}
            isListed
            isActive={index === active}
            aside={{ isIgnored: isIgnored(key), toggle: () => toggle(key) }}
          />
        </li>
      ))}
    </ul>
  )
}
