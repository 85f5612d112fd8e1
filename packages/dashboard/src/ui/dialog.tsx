import { useEffect, useRef } from 'react'
import type { ReactNode } from 'react'
import { useText } from '../text/text.tsx'
import { IconButton } from './button.tsx'

/** A modal dialog: the browser's own keeps the focus inside and closes with Escape. */
export function Dialog({
  title,
  close,
  children,
  isWide = false,
}: {
  readonly title: string
  readonly close: () => void
  readonly children: ReactNode
  readonly isWide?: boolean
}): ReactNode {
  const ref = useRef<HTMLDialogElement>(null)
  const { t } = useText()
  useEffect(() => {
    const dialog = ref.current
    dialog?.showModal()
    // The first field, where there is one; the browser would choose the button that closes.
    dialog?.querySelector<HTMLElement>('[data-body] :is(input, select, textarea):not(:disabled)')?.focus()
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={ref}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault()
        close()
      }}
      onPointerDown={(event) => {
        if (event.target === ref.current) close()
      }}
      className={`m-auto max-h-[88dvh] w-[calc(100vw-2rem)] overflow-hidden rounded-xl border border-line bg-panel p-0 text-ink shadow-2xl backdrop:bg-black/45 backdrop:backdrop-blur-[2px] ${
        isWide ? 'max-w-3xl' : 'max-w-lg'
      }`}
    >
      <div className="flex max-h-[88dvh] flex-col">
        <header className="flex items-center justify-between gap-2 border-b border-line py-2 pr-2 pl-4">
          <h2 className="min-w-0 text-base font-semibold [overflow-wrap:anywhere]">{title}</h2>
          <IconButton icon="close" label={t('common.close')} onClick={close} />
        </header>
        <div data-body className="min-h-0 overflow-y-auto p-4">
          {children}
        </div>
      </div>
    </dialog>
  )
}
