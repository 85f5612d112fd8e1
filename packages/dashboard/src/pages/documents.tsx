import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { ReactNode } from 'react'
import { ApiError, get } from '../data/api.ts'
import { bytes } from '../data/format.ts'
import { useLive, usePost } from '../data/queries.ts'
import { useAddress } from '../data/search.ts'
import { useMayCommand } from '../data/session.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Input } from '../ui/field.tsx'
import { Code, Empty, Failure, Loading, PageHead, Panel } from '../ui/parts.tsx'
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

const TYPING_MS = 250

export function DocumentsPage(): ReactNode {
  const { t } = useText()
  const [search, change] = useAddress()
  const q = search['q'] ?? ''
  const [text, setText] = useState(q)
  const files = useLive<readonly FileBody[]>(['documents', 'failed'], 'documents/files', { status: 'failed' })
  const hits = useQuery({
    queryKey: ['documents', q],
    queryFn: ({ signal }) => get<{ readonly hits: readonly Hit[] }>('documents', { q, limit: 30 }, signal),
    enabled: q !== '',
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
          {hits.error === null ? null : <Failure error={hits.error} />}
          {q === '' ? null : <Hits hits={hits.data?.hits} />}
          <FailedFiles files={files.data ?? []} />
        </div>
      )}
    </>
  )
}

function Hits({ hits }: { readonly hits: readonly Hit[] | undefined }): ReactNode {
  const { t } = useText()
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
              <bdi className="font-semibold [overflow-wrap:anywhere]">{hit.title === '' ? hit.name : hit.title}</bdi>
              <span className="text-xs text-faint">
                {hit.kind} · {bytes(hit.size)}
              </span>
            </p>
            <p className="mt-1 [overflow-wrap:anywhere] text-soft">
              <Snippet hit={hit} />
            </p>
            <bdi className="mt-1 block truncate font-mono text-xs text-faint">{hit.path}</bdi>
          </li>
        ))}
      </ul>
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
                { onSuccess: () => say(t('common.done')), onError: (error) => say(error.message, true) },
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
