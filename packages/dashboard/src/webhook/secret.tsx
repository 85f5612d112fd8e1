import type { wire } from '@impresario/client'
import type { ReactNode } from 'react'
import { absolute } from '../data/format.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { TextArea } from '../ui/field.tsx'
import { CopyButton } from '../ui/parts.tsx'

/** A secret to copy. Nothing keeps it when this is closed. */
export function Secret({
  label,
  secret,
  back,
}: {
  readonly label: string
  readonly secret: wire.WebhookSecretBody
  readonly back: () => void
}): ReactNode {
  const { t, language } = useText()
  const { old_secret_until: until } = secret
  return (
    <>
      <p>{t('endpoint.once')}</p>
      <div className="flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <TextArea
            label={label}
            isLabelHidden
            readOnly
            spellCheck={false}
            className="min-h-16 font-mono text-xs break-all"
            value={secret.secret}
            onFocus={({ target }) => target.select()}
          />
        </div>
        <CopyButton text={secret.secret} label={t('common.copy')} />
      </div>
      {until === null ? null : (
        <p className="text-soft">{t('endpoint.oldUntil', { time: absolute(until, language) })}</p>
      )}
      <div className="flex justify-end">
        <Button onClick={back}>{t('common.close')}</Button>
      </div>
    </>
  )
}
