import type { FileBody, FileGrantBody, JobBody } from '@impresario/protocol'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { get } from '../data/api.ts'
import { bytes } from '../data/format.ts'
import { useJobFiles } from '../data/queries.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { More } from '../ui/more.tsx'
import { Empty, Failure, Loading, Time } from '../ui/parts.tsx'
import { useSay } from '../ui/toast.tsx'

/** The link is followed at once. */
const LINK_SECONDS = 60

/** The files of a job. */
export function JobFiles({ job }: { readonly job: JobBody }): ReactNode {
  const { t } = useText()
  const pages = useJobFiles(job.job_id)
  const { data, error, isPending, refetch } = pages
  if (error !== null) return <Failure error={error} retry={refetch} />
  if (isPending) return <Loading rows={3} />
  const files = data.pages.flatMap(({ files: some }) => some)
  if (files.length === 0) {
    return (
      <Empty icon="doc" title={t('files.none')}>
        {t('files.noneNote')}
      </Empty>
    )
  }
  return (
    <>
      <ul tabIndex={0} aria-label={t('job.tab.files')} className="max-h-[34rem] overflow-y-auto">
        {files.map((file) => (
          <File key={file.name} jobId={job.job_id} file={file} />
        ))}
      </ul>
      <More pages={pages} />
    </>
  )
}

function File({ jobId, file }: { readonly jobId: string; readonly file: FileBody }): ReactNode {
  const { t, language } = useText()
  const say = useSay()
  const [isAsking, setAsking] = useState(false)
  /** A link without a session: a browser sends none of our headers with a download. */
  const download = async (): Promise<void> => {
    setAsking(true)
    try {
      const path = `jobs/${encodeURIComponent(jobId)}/files/link`
      const { url } = await get<FileGrantBody>(path, { filename: file.name, expires_in: LINK_SECONDS })
      location.assign(url)
    } catch (error) {
      say(error, true)
    } finally {
      setAsking(false)
    }
  }
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-2.5 last:border-b-0">
      <bdi className="min-w-0 flex-1 font-medium [overflow-wrap:anywhere]">{file.name}</bdi>
      <span className="num text-soft">{bytes(file.bytes, language)}</span>
      <Time at={file.modified_at} className="text-faint" />
      <Button
        disabled={isAsking}
        aria-label={t('files.downloadOne', { name: file.name })}
        onClick={() => {
          void download()
        }}
      >
        {t('files.download')}
      </Button>
    </li>
  )
}
