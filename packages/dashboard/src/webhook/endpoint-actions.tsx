import type { wire } from '@impresario/client'
import { useEffect, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { useChange, useSecret } from '../data/server-queries.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Select } from '../ui/field.tsx'
import { Failure } from '../ui/parts.tsx'
import { useSay } from '../ui/toast.tsx'
import { Secret } from './secret.tsx'

type Step = 'enable' | 'rotate' | 'show'

interface StepProps {
  readonly endpoint: wire.EndpointBody
  readonly back: () => void
}

/** What can be done with an endpoint. Each is asked once more in the same dialog, or shows its answer there. */
export function EndpointActions({ endpoint }: { readonly endpoint: wire.EndpointBody }): ReactNode {
  const { t } = useText()
  const [step, setStep] = useState<Step>()
  const isHeld = endpoint.status !== 'active' || endpoint.paused_until !== null
  const bar = useRef<HTMLDivElement>(null)
  // What had the focus is gone when somebody comes back.
  const hasBeen = useRef(false)
  useEffect(() => {
    if (step !== undefined) hasBeen.current = true
    else if (hasBeen.current) bar.current?.querySelector('button')?.focus()
  }, [step])
  const back = (): void => setStep(undefined)
  if (step === 'enable') return <Enable endpoint={endpoint} back={back} />
  if (step === 'rotate') return <Rotate endpoint={endpoint} back={back} />
  if (step === 'show') return <Show endpoint={endpoint} back={back} />
  return (
    <div ref={bar} className="mb-4 flex flex-wrap gap-2">
      {isHeld ? (
        <Button tone="primary" icon="run" onClick={() => setStep('enable')}>
          {t('endpoint.enable')}
        </Button>
      ) : null}
      <Button onClick={() => setStep('show')}>{t('endpoint.show')}</Button>
      <Button icon="retry" onClick={() => setStep('rotate')}>
        {t('endpoint.rotate')}
      </Button>
    </div>
  )
}

/** Has the focus when it appears: the button that it came from is gone. */
function Box({ title, children }: { readonly title: string; readonly children: ReactNode }): ReactNode {
  const ref = useRef<HTMLElement>(null)
  useEffect(() => ref.current?.focus(), [])
  return (
    <section
      ref={ref}
      tabIndex={-1}
      aria-label={title}
      className="mb-4 flex flex-col gap-3 rounded-lg border border-line bg-raise p-4 outline-none"
    >
      <h3 className="font-semibold">{title}</h3>
      {children}
    </section>
  )
}

function Enable({ endpoint, back }: StepProps): ReactNode {
  const { t } = useText()
  const say = useSay()
  const enable = useChange<wire.EnabledEndpointBody>()
  return (
    <Box title={t('endpoint.enable')}>
      <p>{t('endpoint.enableNote')}</p>
      {enable.error === null ? null : <Failure error={enable.error} />}
      <div className="flex flex-wrap justify-end gap-2">
        <Button onClick={back}>{t('common.back')}</Button>
        <Button
          tone="primary"
          disabled={enable.isPending}
          onClick={() =>
            enable.mutate(
              { method: 'POST', path: `${pathOf(endpoint)}/enable` },
              {
                onSuccess: ({ released }) => {
                  say(t('endpoint.enabled', { n: released }))
                  back()
                },
              },
            )
          }
        >
          {t('endpoint.enable')}
        </Button>
      </div>
    </Box>
  )
}

const OVERLAPS = [0, 3_600, 86_400, 604_800] as const
const OVERLAP_DEFAULT = 86_400

function Rotate({ endpoint, back }: StepProps): ReactNode {
  const { t } = useText()
  const [overlap, setOverlap] = useState<number>(OVERLAP_DEFAULT)
  const rotate = useChange<wire.WebhookSecretBody>()
  if (rotate.data !== undefined) {
    return (
      <Box key="made" title={t('endpoint.newSecret')}>
        <Secret label={t('endpoint.newSecret')} secret={rotate.data} back={back} />
      </Box>
    )
  }
  return (
    <Box title={t('endpoint.rotate')}>
      <p>{t('endpoint.rotateNote')}</p>
      <Select label={t('endpoint.overlap')} value={overlap} onChange={({ target }) => setOverlap(Number(target.value))}>
        {OVERLAPS.map((seconds) => (
          <option key={seconds} value={seconds}>
            {t(`endpoint.overlap.${seconds}`)}
          </option>
        ))}
      </Select>
      {rotate.error === null ? null : <Failure error={rotate.error} />}
      <div className="flex flex-wrap justify-end gap-2">
        <Button onClick={back}>{t('common.back')}</Button>
        <Button
          tone="danger"
          disabled={rotate.isPending}
          onClick={() =>
            rotate.mutate({ method: 'POST', path: `${pathOf(endpoint)}/rotate-secret`, body: { overlap } })
          }
        >
          {t('endpoint.rotate')}
        </Button>
      </div>
    </Box>
  )
}

function Show({ endpoint, back }: StepProps): ReactNode {
  const { t } = useText()
  const { data, error } = useSecret(endpoint.id)
  return (
    <Box title={t('endpoint.secret')}>
      {error === null ? null : <Failure error={error} />}
      {data === undefined ? null : <Secret label={t('endpoint.secret')} secret={data} back={back} />}
    </Box>
  )
}

function pathOf({ id }: wire.EndpointBody): string {
  return `webhooks/endpoints/${encodeURIComponent(id)}`
}
