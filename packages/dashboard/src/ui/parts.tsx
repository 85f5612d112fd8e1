import { useLayoutEffect, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { absolute, relative, useNow } from '../data/format.ts'
import { useText } from '../text/text.tsx'
import { Icon } from './icon.tsx'
import type { IconName } from './icon.tsx'
import { Said } from './toast.tsx'

export function Panel({
  title,
  actions,
  children,
  className = '',
  flush = false,
}: {
  readonly title?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
  readonly className?: string
  /** Without a margin inside, for lists and graphs. */
  readonly flush?: boolean
}): ReactNode {
  return (
    <section className={`min-w-0 rounded-xl border border-line bg-panel shadow-card ${className}`}>
      {title === undefined ? null : (
        <header className="flex min-h-11 flex-wrap items-center justify-between gap-2 border-b border-line px-4 py-2">
          <h2 className="text-sm font-semibold">{title}</h2>
          {actions === undefined ? null : <div className="flex items-center gap-1.5">{actions}</div>}
        </header>
      )}
      <div className={flush ? '' : 'p-4'}>{children}</div>
    </section>
  )
}

/** The head of a page: what it is, in one line what it is for, and what can be done on it. */
export function PageHead({
  title,
  note,
  children,
}: {
  readonly title: ReactNode
  readonly note?: ReactNode
  readonly children?: ReactNode
}): ReactNode {
  return (
    <header className="mb-5 flex flex-wrap items-end justify-between gap-x-4 gap-y-3">
      <div className="min-w-0">
        <h1 className="text-xl font-semibold tracking-tight [overflow-wrap:anywhere] text-balance">{title}</h1>
        {note === undefined ? null : <p className="mt-0.5 max-w-prose [overflow-wrap:anywhere] text-soft">{note}</p>}
      </div>
      {children === undefined ? null : <div className="flex flex-wrap items-center gap-2">{children}</div>}
    </header>
  )
}

/** Says what would be here, and what to do so that something is. */
export function Empty({
  icon,
  title,
  isPage = false,
  children,
}: {
  readonly icon: IconName
  readonly title: string
  /** There is nothing else on the page, so that this is its heading. */
  readonly isPage?: boolean
  readonly children?: ReactNode
}): ReactNode {
  const Title = isPage ? 'h1' : 'p'
  return (
    <div className="flex flex-col items-center gap-2 px-6 py-14 text-center">
      <span className="flex size-10 items-center justify-center rounded-full bg-raise text-faint">
        <Icon name={icon} className="size-5" />
      </span>
      <Title className="text-base font-medium">{title}</Title>
      {children === undefined ? null : <div className="max-w-md text-soft">{children}</div>}
    </div>
  )
}

export function Failure({ error, retry }: { readonly error: Error; readonly retry?: () => unknown }): ReactNode {
  const { t } = useText()
  return (
    <div role="alert" className="flex flex-wrap items-center gap-3 rounded-lg bg-bad-tint px-4 py-3 text-bad">
      <Icon name="alert" />
      <Said what={error} className="flex-1" />
      {retry === undefined ? null : (
        <button type="button" className="font-medium underline" onClick={() => retry()}>
          {t('common.again')}
        </button>
      )}
    </div>
  )
}

/** Grey lines where rows will be. */
export function Loading({ rows = 5 }: { readonly rows?: number }): ReactNode {
  const { t } = useText()
  return (
    <div role="status" aria-label={t('common.loading')} className="flex flex-col gap-2.5 p-4">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} className="pulse h-6 rounded bg-raise" />
      ))}
    </div>
  )
}

/** Relative in the text, absolute on hover, in the viewer's zone. */
export function Time({ at, className = '' }: { readonly at: number; readonly className?: string }): ReactNode {
  const { language } = useText()
  const now = useNow(Math.abs(Date.now() / 1_000 - at) < 90 ? 1_000 : 20_000)
  return (
    <time
      dateTime={new Date(at * 1_000).toISOString()}
      title={absolute(at, language)}
      className={`num whitespace-nowrap ${className}`}
    >
      {relative(at, now, language)}
    </time>
  )
}

export function Code({
  children,
  className = '',
}: {
  readonly children: ReactNode
  readonly className?: string
}): ReactNode {
  return (
    <code className={`rounded bg-raise px-1.5 py-0.5 font-mono text-[0.92em] [overflow-wrap:anywhere] ${className}`}>
      {children}
    </code>
  )
}

export function CopyButton({ text, label }: { readonly text: string; readonly label: string }): ReactNode {
  const [isCopied, setCopied] = useState(false)
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className="inline-flex size-6 items-center justify-center rounded text-faint hover:bg-raise hover:text-ink"
      onClick={() => {
        void navigator.clipboard?.writeText(text).then(() => {
          setCopied(true)
          setTimeout(() => setCopied(false), 1_500)
        })
      }}
    >
      <Icon name={isCopied ? 'check' : 'copy'} className="size-3.5" />
    </button>
  )
}

/** A name and its value, in a list of facts. */
export function Fact({
  name,
  children,
  isWide = false,
  isFull = false,
}: {
  readonly name: string
  readonly children: ReactNode
  /** Over two columns. */
  readonly isWide?: boolean
  /** Over all columns. */
  readonly isFull?: boolean
}): ReactNode {
  return (
    <div className={`flex min-w-0 flex-col gap-0.5 ${isFull ? 'col-span-full' : isWide ? 'col-span-2' : ''}`}>
      <dt className="text-xs text-faint">{name}</dt>
      <dd className="min-w-0 [overflow-wrap:anywhere]">{children}</dd>
    </div>
  )
}

export function Bar({
  value,
  label,
  tone = 'bg-fill',
}: {
  readonly value: number
  readonly label: string
  readonly tone?: string
}): ReactNode {
  const percent = Math.round(Math.min(1, Math.max(0, value)) * 100)
  return (
    <span
      role="progressbar"
      aria-label={label}
      aria-valuenow={percent}
      aria-valuemin={0}
      aria-valuemax={100}
      className="block h-1.5 w-full min-w-12 overflow-hidden rounded-full bg-raise"
    >
      <span className={`block h-full rounded-full ${tone}`} style={{ width: `${percent}%` }} />
    </span>
  )
}

export function Tabs<T extends string>({
  tabs,
  chosen,
  choose,
  label,
}: {
  readonly tabs: readonly (readonly [id: T, title: string, count?: number])[]
  readonly chosen: T
  readonly choose: (tab: T) => void
  readonly label: string
}): ReactNode {
  const list = useRef<HTMLDivElement>(null)
  // A count that comes later makes its tab wider.
  const titles = tabs.map(([, title, count]) => `${title} ${count ?? ''}`).join(' ')
  // On a narrow page the chosen one may lie beyond the edge. Only the tabs move, and not the page.
  useLayoutEffect(() => {
    const tab = list.current?.querySelector<HTMLElement>('[aria-selected="true"]')
    if (list.current === null || tab === null || tab === undefined) return
    const beyond = tab.getBoundingClientRect().right - list.current.getBoundingClientRect().right
    const before = list.current.getBoundingClientRect().left - tab.getBoundingClientRect().left
    if (beyond > 0) list.current.scrollLeft += beyond
    else if (before > 0) list.current.scrollLeft -= before
  }, [chosen, titles])
  return (
    <div ref={list} role="tablist" aria-label={label} className="flex gap-0.5 overflow-x-auto border-b border-line">
      {tabs.map(([id, title, count]) => (
        <button
          key={id}
          role="tab"
          type="button"
          aria-selected={id === chosen}
          tabIndex={id === chosen ? 0 : -1}
          onClick={() => choose(id)}
          onKeyDown={(event) => {
            const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
            if (step === 0) return
            const place = tabs.findIndex(([one]) => one === chosen)
            const next = tabs[(place + step + tabs.length) % tabs.length]
            if (next !== undefined) choose(next[0])
            const sibling =
              step > 0 ? event.currentTarget.nextElementSibling : event.currentTarget.previousElementSibling
            if (sibling instanceof HTMLElement) sibling.focus()
          }}
          className={`-mb-px flex items-center gap-1.5 border-b-2 px-2 py-2 font-medium whitespace-nowrap ${
            id === chosen ? 'border-accent text-ink' : 'border-transparent text-soft hover:text-ink'
          }`}
        >
          {title}
          {count === undefined ? null : <span className="num rounded-full bg-raise px-1.5 text-xs">{count}</span>}
        </button>
      ))}
    </div>
  )
}
