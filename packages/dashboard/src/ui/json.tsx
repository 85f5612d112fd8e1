import { isAnyNumber, stringifyExact } from '@impresario/protocol'
import { useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { bytes } from '../data/format.ts'
import { useText } from '../text/text.tsx'
import { CopyButton } from './parts.tsx'

/** What is shown of a text or of a list before somebody asks for the rest. */
const TEXT_MAX = 2_000
const ENTRIES_MAX = 50

/** A value as a tree. Texts stay texts: nothing in them is run, and nothing breaks the layout. */
export function JsonView({ value, label }: { readonly value: unknown; readonly label: string }): ReactNode {
  const { t, language } = useText()
  const text = useMemo(() => written(value), [value])
  return (
    <div className="relative min-w-0">
      <div className="absolute top-0 right-0 flex items-center gap-1 text-xs text-faint">
        <span className="num">{bytes(text.length, language)}</span>
        <CopyButton text={text} label={`${t('common.copy')}: ${label}`} />
      </div>
      <div dir="ltr" className="overflow-x-auto pr-20 font-mono text-xs leading-5">
        <Value value={value} depth={0} />
      </div>
    </div>
  )
}

export function written(value: unknown, indent = 2): string {
  return value === undefined ? '' : stringifyExact(value, indent)
}

function Value({ value, depth }: { readonly value: unknown; readonly depth: number }): ReactNode {
  if (value === null || value === undefined) return <span className="text-faint">null</span>
  if (typeof value === 'boolean') return <span className="text-ask">{String(value)}</span>
  if (typeof value === 'string') return <Text text={value} />
  if (isAnyNumber(value)) return <span className="text-info">{stringifyExact(value)}</span>
  return <Branch value={value} depth={depth} />
}

function Text({ text }: { readonly text: string }): ReactNode {
  const [isWhole, setWhole] = useState(false)
  const { t, language } = useText()
  const shown = isWhole || text.length <= TEXT_MAX ? text : text.slice(0, TEXT_MAX)
  return (
    <span className="text-ok [overflow-wrap:anywhere] whitespace-pre-wrap [unicode-bidi:isolate]">
      {JSON.stringify(shown)}
      {shown.length === text.length ? null : (
        <button type="button" className="ml-1 text-accent underline" onClick={() => setWhole(true)}>
          {t('json.rest', { size: bytes(text.length - shown.length, language) })}
        </button>
      )}
    </span>
  )
}

function Branch({ value, depth }: { readonly value: unknown; readonly depth: number }): ReactNode {
  const isList = Array.isArray(value)
  const entries = Object.entries(value as object)
  const [isOpen, setOpen] = useState(depth < 2 && entries.length <= ENTRIES_MAX)
  const [count, setCount] = useState(ENTRIES_MAX)
  const { t } = useText()
  const [begin, end] = isList ? ['[', ']'] : ['{', '}']
  if (entries.length === 0) return <span className="text-faint">{`${begin}${end}`}</span>
  return (
    <span>
      <button
        type="button"
        aria-expanded={isOpen}
        className="rounded text-faint hover:bg-raise hover:text-ink"
        onClick={() => setOpen(!isOpen)}
      >
        {isOpen ? begin : `${begin} ${t('json.entries', { n: entries.length })} ${end}`}
      </button>
      {isOpen ? (
        <>
          <span className="block border-l border-line pl-4">
            {entries.slice(0, count).map(([key, inner]) => (
              <span key={key} className="block">
                {isList ? null : (
                  <span className="[overflow-wrap:anywhere] text-ink">
                    <bdi>{key.length > 200 ? `${key.slice(0, 200)}…` : key}</bdi>
                    <span className="text-faint">: </span>
                  </span>
                )}
                <Value value={inner} depth={depth + 1} />
              </span>
            ))}
            {entries.length > count ? (
              <button type="button" className="text-accent underline" onClick={() => setCount(count + 500)}>
                {t('json.more', { n: entries.length - count })}
              </button>
            ) : null}
          </span>
          <span className="text-faint">{end}</span>
        </>
      ) : null}
    </span>
  )
}
