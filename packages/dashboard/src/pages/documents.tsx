import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { ReactNode } from 'react'
import { ApiError, get } from '../data/api.ts'
import { bytes } from '../data/format.ts'
import { useLive, usePost } from '../data/queries.ts'
import { useAddress } from '../data/search.ts'
import { useMayCommand } from '../data/session.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Input } from '../ui/field.tsx'
import { FilterSelect } from '../ui/filters.tsx'
import { More } from '../ui/more.tsx'
import { Bar, Code, Empty, Fact, Failure, Loading, PageHead, Panel, Time } from '../ui/parts.tsx'
import { StatusBadge } from '../ui/status.tsx'
import { useSay } from '../ui/toast.tsx'

interface Hit {
  readonly id: number
  readonly path: string
  readonly name: string
  readonly kind: string
  readonly title: string
  readonly snippet: string
  readonly highlights: readonly (readonly [number, number])[]
  readonly size: number
  readonly modified_at: string
}

interface FileBody {
  readonly id: number
  readonly path: string
  readonly status: string
  readonly code: string | null
  readonly error: string | null
}

interface HitsBody {
  readonly hits: readonly Hit[]
  readonly has_more: boolean
}

/** Of what the documents app says of itself, what is shown. */
interface StatusBody {
  readonly state: { readonly last_activity: string | null }
  readonly progress: { readonly total: number; readonly done: number }
  readonly files: Readonly<Record<string, number>>
  readonly documents: number
  readonly components: readonly { readonly name: string; readonly isHealthy: boolean; readonly problem?: string }[]
  readonly ocr: { readonly languages?: readonly string[]; readonly reason?: string }
}

const TYPING_MS = 250
const PAGE = 30
const SHOWN_CHARS = 200_000
const KINDS = ['pdf', 'docx', 'xlsx', 'pptx', 'odt', 'txt', 'md', 'html', 'eml', 'csv', 'epub'] as const
/** In days. */
const SPANS = { week: 7, month: 30, year: 365 } as const

export function DocumentsPage(): ReactNode {
  const { t } = useText()
  const [search, change] = useAddress()
  const q = search['q'] ?? ''
  const [text, setText] = useState(q)
  const files = useLive<readonly FileBody[]>(['documents', 'failed'], 'documents/files', { status: 'failed' })
  const asked = askedOf(search)
  const found = useInfiniteQuery({
    queryKey: ['documents', asked],
    queryFn: ({ signal, pageParam: offset }) => get<HitsBody>('documents', { q: asked, limit: PAGE, offset }, signal),
    initialPageParam: 0,
    getNextPageParam: (last, pages) => (last.has_more ? pages.length * PAGE : undefined),
    enabled: asked !== '',
    placeholderData: (before) => before,
    retry: false,
  })
  useEffect(() => {
    const timer = setTimeout(() => change({ q: text }, true), TYPING_MS)
    return () => clearTimeout(timer)
  }, [text, change])
  const isAbsent = files.error instanceof ApiError && files.error.status === 404
  return (
    <>
      <PageHead title={t('nav.documents')} note={t('documents.note')} />
      {isAbsent ? (
        <Panel flush>
          <Empty icon="doc" title={t('documents.absent')}>
            <p className="mb-3">{t('documents.absentNote')}</p>
            <Code>DOCUMENTS_CONFIG_PATH=documents.yaml impresario start</Code>
          </Empty>
        </Panel>
      ) : (
        <div className="flex flex-col gap-4">
          <Input
            type="search"
            label={t('documents.search')}
            isLabelHidden
            placeholder={t('documents.search')}
            value={text}
            className="h-10"
            onChange={({ target }) => setText(target.value)}
          />
          <Filters />
          {found.error === null ? null : <Failure error={found.error} />}
          {asked === '' ? null : (
            <Hits hits={found.data?.pages.flatMap(({ hits }) => hits)}>
              <More pages={found} />
            </Hits>
          )}
          <IndexState />
          <FailedFiles files={files.data ?? []} />
        </div>
      )}
    </>
  )
}

/** What is asked for, with the filters in the words of the search. */
function askedOf({ q = '', type = '', since = '' }: Readonly<Record<string, string | undefined>>): string {
  const days = isSpan(since) ? SPANS[since] : undefined
  const day = days === undefined ? '' : new Date(Date.now() - (days + 1) * 86_400_000).toISOString().slice(0, 10)
  const filters = [isKind(type) ? `type:${type}` : '', day === '' ? '' : `date:>${day}`]
  return [q.trim(), ...filters].filter((part) => part !== '').join(' ')
}

function isSpan(name: string): name is keyof typeof SPANS {
  return Object.hasOwn(SPANS, name)
}

function isKind(name: string): boolean {
  return KINDS.some((kind) => kind === name)
}

function Filters(): ReactNode {
  const { t } = useText()
  const spans = (['week', 'month', 'year'] as const).map(
    (span) => [span, t(span === 'year' ? 'documents.year' : `jobs.since.${span}`)] as const,
  )
  return (
    <div className="grid grid-cols-2 gap-2 sm:flex *:sm:w-48">
      <FilterSelect
        name="type"
        label={t('documents.type')}
        any={t('documents.anyType')}
        options={KINDS.map((kind) => [kind, kind])}
      />
      <FilterSelect name="since" label={t('documents.changed')} any={t('jobs.anyTime')} options={spans} />
    </div>
  )
}

/** How far the index is, and what does not work. */
function IndexState(): ReactNode {
  const { t, language } = useText()
  const { data } = useLive<StatusBody>(['documents', 'status'], 'documents/status')
  if (data === undefined) return null
  const numbers = new Intl.NumberFormat(language)
  const { progress, files, ocr } = data
  const waiting = (files['pending'] ?? 0) + (files['running'] ?? 0) + (files['retry'] ?? 0)
  const broken = data.components.filter(({ isHealthy }) => !isHealthy)
  const { last_activity: last } = data.state
  return (
    <Panel title={t('documents.index')}>
      {progress.done < progress.total ? (
        <div className="mb-4">
          <Bar value={progress.done / progress.total} label={t('documents.progress')} />
        </div>
      ) : null}
      <dl className="grid grid-cols-2 gap-4 sm:grid-cols-4">
        <Fact name={t('documents.count')}>
          <span className="num text-lg font-semibold">{numbers.format(data.documents)}</span>
        </Fact>
        <Fact name={t('documents.waiting')}>
          <span className="num text-lg font-semibold">{numbers.format(waiting)}</span>
        </Fact>
        <Fact name={t('documents.last')}>{last === null ? '–' : <Time at={Date.parse(last) / 1_000} />}</Fact>
        <Fact name={t('documents.pictures')}>
          {ocr.languages === undefined || ocr.languages.length === 0 ? (
            <span title={ocr.reason ?? ''}>{t('documents.noPictures')}</span>
          ) : (
            ocr.languages.join(', ')
          )}
        </Fact>
      </dl>
      {broken.map(({ name, problem }) => (
        <p key={name} className="mt-3 text-bad">
          <bdi className="font-medium">{name}</bdi>: <bdi>{problem}</bdi>
        </p>
      ))}
    </Panel>
  )
}

/** The whole text of a document. */
function TextDialog({ hit, close }: { readonly hit: Hit; readonly close: () => void }): ReactNode {
  const { data, error } = useQuery({
    queryKey: ['documents', 'text', hit.id],
    queryFn: ({ signal }) => get<{ readonly text: string }>(`documents/${hit.id}/text`, {}, signal),
    retry: false,
  })
  return (
    <Dialog isWide title={hit.title === '' ? hit.name : hit.title} close={close}>
      {error === null ? null : <Failure error={error} />}
      {data === undefined && error === null ? <Loading /> : null}
      {data === undefined ? null : (
        // A book has megabytes: what is drawn has a bound.
        <pre tabIndex={0} className="max-h-[60vh] overflow-auto text-sm [overflow-wrap:anywhere] whitespace-pre-wrap">
          <bdi>{data.text.slice(0, SHOWN_CHARS)}</bdi>
          {data.text.length > SHOWN_CHARS ? ' …' : ''}
        </pre>
      )}
    </Dialog>
  )
}

function Hits({
  hits,
  children,
}: {
  readonly hits: readonly Hit[] | undefined
  readonly children: ReactNode
}): ReactNode {
  const { t, language } = useText()
  const [open, setOpen] = useState<Hit>()
  if (hits === undefined) return <Loading />
  return (
    <Panel flush className="overflow-hidden">
      {hits.length === 0 ? (
        <Empty icon="search" title={t('documents.nothing')}>
          {t('documents.nothingNote')}
        </Empty>
      ) : null}
      <ul>
        {hits.map((hit) => (
          <li key={hit.id} className="border-b border-line px-4 py-3 last:border-b-0">
            <p className="flex flex-wrap items-baseline gap-x-3">
              <button type="button" className="text-left hover:underline" onClick={() => setOpen(hit)}>
                <bdi className="font-semibold [overflow-wrap:anywhere]">{hit.title === '' ? hit.name : hit.title}</bdi>
              </button>
              <span className="text-xs text-faint">
                {hit.kind} · {bytes(hit.size, language)}
              </span>
            </p>
            <p className="mt-1 [overflow-wrap:anywhere] text-soft">
              <Snippet hit={hit} />
            </p>
            <bdi className="mt-1 block truncate font-mono text-xs text-faint">{hit.path}</bdi>
          </li>
        ))}
      </ul>
      {children}
      {open === undefined ? null : <TextDialog hit={open} close={() => setOpen(undefined)} />}
    </Panel>
  )
}

function Snippet({ hit: { snippet, highlights } }: { readonly hit: Hit }): ReactNode {
  const parts: ReactNode[] = []
  let place = 0
  for (const [start, end] of highlights) {
    parts.push(snippet.slice(place, start))
    parts.push(
      <mark key={start} className="rounded bg-warn-tint px-0.5 text-warn">
        {snippet.slice(start, end)}
      </mark>,
    )
    place = end
  }
  return (
    <bdi>
      {parts}
      {snippet.slice(place)}
    </bdi>
  )
}

function FailedFiles({ files }: { readonly files: readonly FileBody[] }): ReactNode {
  const { t } = useText()
  const say = useSay()
  const post = usePost()
  const mayCommand = useMayCommand()
  return (
    <Panel
      flush
      title={t('documents.failed', { n: files.length })}
      className="overflow-hidden"
      actions={
        mayCommand && files.length > 0 ? (
          <Button
            size="small"
            icon="retry"
            onClick={() =>
              post.mutate(
                { path: 'documents/retry' },
                { onSuccess: () => say(t('common.done')), onError: (error) => say(error, true) },
              )
            }
          >
            {t('quarantine.retryAll')}
          </Button>
        ) : null
      }
    >
      {files.length === 0 ? <p className="px-4 py-5 text-soft">{t('documents.noneFailed')}</p> : null}
      <ul>
        {files.map((file) => (
          <li key={file.id} className="flex items-center gap-3 border-b border-line px-4 py-2 last:border-b-0">
            <span className="min-w-0 flex-1">
              <bdi className="block truncate font-mono text-xs">{file.path}</bdi>
              <bdi className="block truncate text-xs text-bad">{file.error ?? file.code}</bdi>
            </span>
            <StatusBadge status={file.status} />
          </li>
        ))}
      </ul>
    </Panel>
  )
}
