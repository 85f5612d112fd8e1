import type { wire } from '@impresario/client'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { useChange } from '../data/server-queries.ts'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Input } from '../ui/field.tsx'
import { Failure } from '../ui/parts.tsx'

/** Names an address before its first message. One that is known already is opened. */
export function NewEndpoint({
  open,
  close,
}: {
  readonly open: (id: string) => void
  readonly close: () => void
}): ReactNode {
  const { t } = useText()
  const [url, setUrl] = useState('')
  const declare = useChange<wire.EndpointBody>()
  return (
    <Dialog title={t('endpoint.new')} close={close}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          declare.mutate(
            { method: 'POST', path: 'webhooks/endpoints', body: { url: url.trim() } },
            { onSuccess: ({ id }) => open(id) },
          )
        }}
      >
        <p className="text-soft">{t('endpoint.newNote')}</p>
        <Input
          type="url"
          label={t('endpoint.url')}
          required
          maxLength={4_096}
          placeholder="https://"
          value={url}
          onChange={({ target }) => setUrl(target.value)}
        />
        {declare.error === null ? null : <Failure error={declare.error} />}
        <div className="flex justify-end">
          <Button type="submit" tone="primary" disabled={declare.isPending || url.trim() === ''}>
            {t('endpoint.declare')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
