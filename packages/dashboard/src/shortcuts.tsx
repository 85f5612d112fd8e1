import type { ReactNode } from 'react'
import { ALL_PLACES } from './navigation.ts'
import { useText } from './text/text.tsx'
import type { TextKey } from './text/translate.ts'
import { Dialog } from './ui/dialog.tsx'

const KEYS: readonly (readonly [keys: string, what: TextKey])[] = [
  ['?', 'keys.help'],
  ['Ctrl K', 'keys.palette'],
  ['/', 'keys.search'],
  ['j  k', 'keys.rows'],
  ['Enter', 'keys.open'],
  ['x', 'keys.choose'],
  ['n', 'keys.new'],
  ['c', 'keys.cancel'],
  ['r', 'keys.retry'],
  ['1 … 9', 'keys.decide'],
  ['r', 'keys.respond'],
  ['i', 'keys.ignore'],
]

/** What keys do. */
export function Shortcuts({ close }: { readonly close: () => void }): ReactNode {
  const { t } = useText()
  return (
    <Dialog title={t('keys.title')} close={close}>
      <dl className="grid grid-cols-1 gap-x-8 gap-y-1.5 sm:grid-cols-2">
        {[
          ...KEYS.map(([keys, what]) => [keys, t(what)]),
          ...ALL_PLACES.map(({ key, title }) => [`g ${key}`, t(title)]),
        ].map(([keys = '', what]) => (
          <div key={keys + String(what)} className="flex items-center justify-between gap-3">
            <dt className="text-soft">{what}</dt>
            <dd className="flex gap-1">
              {keys.split(/ +/).map((key) => (
                <kbd
                  key={key}
                  className="min-w-6 rounded border border-line bg-raise px-1.5 text-center font-sans text-xs"
                >
                  {key}
                </kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
