import type { HistoryBody } from '@impresario/protocol'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useMemo, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { absolute, clockTime, duration } from '../data/format.ts'
import { eventWords } from '../text/event-words.ts'
import { useText } from '../text/text.tsx'
import { Icon } from '../ui/icon.tsx'
import type { IconName } from '../ui/icon.tsx'
import { Empty } from '../ui/parts.tsx'
import { groupedRows, isGroup } from './groups.ts'
import type { Group, Row } from './groups.ts'
import type { Span } from './path.ts'

const ICONS: Readonly<Record<Span['kind'], IconName>> = {
  state: 'blueprint',
  task: 'run',
  child: 'jobs',
  person: 'person',
}

/** Stays in states and what happened in them, as bars over one axis of time. */
export function Timeline({
  spans,
  from,
  until,
  chosen,
  choose,
}: {
  readonly spans: readonly Span[]
  readonly from: number
  readonly until: number
  readonly chosen: string | undefined
  readonly choose: (state: string | undefined) => void
}): ReactNode {
  const { t } = useText()
  const scroller = useRef<HTMLDivElement>(null)
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const shown = useMemo(
    () => groupedRows(chosen === undefined ? spans : spans.filter(({ state }) => state === chosen), open),
    [spans, chosen, open],
  )
  const press = (row: Row): void => {
    if (!isGroup(row)) {
      choose(chosen === row.state ? undefined : row.state)
      return
    }
    const next = new Set(open)
    if (!next.delete(row.id)) next.add(row.id)
    setOpen(next)
  }
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 30,
    overscan: 10,
  })
  if (shown.length === 0) return <Empty icon="clock" title={t('job.noTimeline')} />
  return (
    <div
      ref={scroller}
      tabIndex={0}
      role="region"
      aria-label={t('job.timeline')}
      className="max-h-[34rem] overflow-y-auto py-2"
    >
      <ul className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start, key }) => {
          const span = shown[index]
          if (span === undefined) return null
          return (
            <li key={key} className="absolute inset-x-0 h-[30px]" style={{ transform: `translateY(${start}px)` }}>
              <Bar
                row={span}
                from={from}
                until={until}
                isOpen={isGroup(span) ? open.has(span.id) : undefined}
                press={() => press(span)}
              />
            </li>
          )
        })}
      </ul>
    </div>
  )
}

interface BarProps {
  readonly row: Row
  /** Of the whole axis, Unix seconds. */
  readonly from: number
  readonly until: number
  /** Of a group: whether its parts are shown. */
  readonly isOpen: boolean | undefined
  readonly press: () => void
}

function Bar({ row, from, until, isOpen, press }: BarProps): ReactNode {
  const { language } = useText()
  const total = Math.max(0.001, until - from)
  const place = (at: number): number => (Math.max(0, at - from) / total) * 100
  const left = place(row.from)
  const width = Math.max(0.6, place(row.until ?? until) - left)
  return (
    <button
      type="button"
      title={row.note}
      onClick={press}
      {...(isOpen === undefined ? {} : { 'aria-expanded': isOpen })}
      className="flex h-full w-full items-center gap-3 px-4 text-left hover:bg-raise"
    >
      <span
        className={`flex w-[42%] min-w-0 items-center gap-2 ${row.kind === 'state' ? 'font-medium' : 'pl-5 text-soft'}`}
      >
        <Icon
          name={isOpen === undefined ? ICONS[row.kind] : isOpen ? 'down' : 'right'}
          className={`size-3.5 shrink-0 ${row.isBad ? 'text-bad' : 'text-faint'}`}
        />
        <bdi className="truncate">{row.name}</bdi>
        {isGroup(row) ? <Size row={row} /> : null}
        {row.worker === undefined ? null : (
          <bdi className="truncate rounded bg-raise px-1.5 text-xs text-soft">{row.worker}</bdi>
        )}
      </span>
      <span className="relative h-full flex-1">
        <span
          className={`absolute top-1/2 h-2.5 -translate-y-1/2 rounded-sm ${barClass(row)}`}
          style={{
            left: `${Math.min(99.4, left)}%`,
            width: `${Math.min(width, 100 - Math.min(99.4, left))}%`,
          }}
        />
      </span>
      <span className="num min-w-16 shrink-0 text-right text-xs whitespace-nowrap text-soft">
        {duration(((row.until ?? until) - row.from) * 1_000, language)}
      </span>
    </button>
  )
}

function Size({ row: { spans, failed } }: { readonly row: Group }): ReactNode {
  const { t } = useText()
  return (
    <span className="num shrink-0 rounded bg-raise px-1.5 text-xs text-soft">
      × {spans.length}
      {failed === 0 ? null : <span className="text-bad"> · {t('timeline.failed', { n: failed })}</span>}
    </span>
  )
}

function barClass({ kind, isBad, until }: Span): string {
  if (isBad) return 'bg-bad'
  if (until === undefined) return 'bg-info pulse'
  return kind === 'state' ? 'bg-edge' : kind === 'person' ? 'bg-ask' : 'bg-fill'
}

/** Every event as it is written. */
export function EventLog({
  events,
  begin,
}: {
  readonly events: readonly HistoryBody[]
  readonly begin: number
}): ReactNode {
  const { t, language } = useText()
  const scroller = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: events.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 34,
    overscan: 12,
  })
  if (events.length === 0) return <Empty icon="event" title={t('job.noTimeline')} />
  return (
    <div
      ref={scroller}
      tabIndex={0}
      role="region"
      aria-label={t('job.events')}
      className="max-h-[34rem] overflow-y-auto"
    >
      <ul className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start, key }) => {
          const event = events[index]
          if (event === undefined) return null
          return (
            <li
              key={key}
              className="absolute inset-x-0 flex h-[34px] items-center gap-3 border-b border-line px-4"
              style={{ transform: `translateY(${start}px)` }}
            >
              <time
                className="num w-24 shrink-0 font-mono text-xs text-faint"
                title={absolute(event.timestamp, language)}
              >
                {clockTime(event.timestamp, language)}
              </time>
              <span className="num hidden w-16 shrink-0 text-right text-xs text-faint lg:block">
                +{duration((event.timestamp - begin) * 1_000, language)}
              </span>
              <span className="shrink-0 font-medium">{eventWords(t, event.event_type)}</span>
              <bdi className="truncate text-soft" title={event.note ?? undefined}>
                {[event.state, event.note].filter((part) => part !== null).join(' · ')}
              </bdi>
            </li>
          )
        })}
      </ul>
    </div>
  )
}
