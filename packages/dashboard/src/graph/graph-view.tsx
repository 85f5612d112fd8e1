import type { wire } from '@impresario/client'
import { useEffect, useMemo, useRef, useState } from 'react'
import type { PointerEvent, ReactNode } from 'react'
import { duration } from '../data/format.ts'
import { stepName } from '../job/path.ts'
import type { Path } from '../job/path.ts'
import { useText } from '../text/text.tsx'
import { IconButton } from '../ui/button.tsx'
import { toneOf } from '../ui/status.tsx'
import { curve, layoutOf, linesOf, shortened } from './layout.ts'
import type { Layout, PlacedState, PlacedStep } from './layout.ts'

interface View {
  readonly x: number
  readonly y: number
  readonly scale: number
}

export interface GraphProps {
  readonly blueprint: wire.BlueprintView
  readonly path?: Path | undefined
  readonly current?: { readonly state: string; readonly status: string } | undefined
  /** Jobs that are in each state now. */
  readonly heat?: ReadonlyMap<string, number> | undefined
  /** How long stays in each state took, in words. */
  readonly took?: ReadonlyMap<string, string> | undefined
  readonly chosen?: string | undefined
  readonly choose?: (state: string | undefined) => void
  readonly className?: string
}

/** A blueprint as a graph; for a job, with the way that it took. Can be moved and zoomed. */
export function GraphView(props: GraphProps): ReactNode {
  const { blueprint, className = 'h-[30rem]' } = props
  const placed = useMemo(() => layoutOf(blueprint), [blueprint])
  const frame = useRef<HTMLDivElement>(null)
  const { view, zoom, fit, drag } = useView(frame, placed)
  const { t } = useText()
  return (
    <div ref={frame} className={`relative touch-none overflow-hidden ${className}`}>
      <svg
        className="absolute inset-0 size-full cursor-grab active:cursor-grabbing"
        role="group"
        aria-label={t('graph.of', { name: blueprint.name })}
        {...drag}
      >
        <defs>
          {(['edge', 'accent'] as const).map((name) => (
            <marker
              key={name}
              id={`arrow-${name}`}
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="7"
              markerHeight="7"
              orient="auto-start-reverse"
            >
              <path d="M0.5 0.8 7.2 4 0.5 7.2z" className={name === 'edge' ? 'fill-edge' : 'fill-accent'} />
            </marker>
          ))}
        </defs>
        <g transform={`translate(${view.x} ${view.y}) scale(${view.scale})`}>
          {placed.steps.map((step) => (
            <Step
              key={stepName(step.from, step.to)}
              step={step}
              count={props.path?.steps.get(stepName(step.from, step.to))}
              isJob={props.path !== undefined}
            />
          ))}
          {placed.states.map((one) => (
            <State key={one.state.name} placed={one} {...props} />
          ))}
        </g>
      </svg>
      <div className="absolute top-2 right-2 flex rounded-lg border border-line bg-panel shadow-card">
        <IconButton icon="minus" label={t('graph.out')} onClick={() => zoom(1 / 1.3)} />
        <IconButton icon="plus" label={t('graph.in')} onClick={() => zoom(1.3)} />
        <IconButton icon="fit" label={t('graph.fit')} onClick={fit} />
      </div>
    </div>
  )
}

function Step({
  step,
  count,
  isJob,
}: {
  readonly step: PlacedStep
  readonly count: number | undefined
  readonly isJob: boolean
}): ReactNode {
  const isTaken = count !== undefined
  const label = [step.label, isTaken && count > 1 ? `×${count}` : ''].filter((part) => part !== '').join(' ')
  return (
    <g className={isJob && !isTaken ? 'opacity-60' : ''}>
      <path
        d={curve(step.points)}
        fill="none"
        strokeWidth={isTaken ? 2 : 1.25}
        strokeDasharray={isJob && !isTaken ? '4 4' : undefined}
        className={isTaken ? 'stroke-accent' : 'stroke-edge dark:stroke-faint/75'}
        markerEnd={`url(#arrow-${isTaken ? 'accent' : 'edge'})`}
      />
      {step.labelAt === undefined || label === '' ? null : (
        <g transform={`translate(${step.labelAt.x} ${step.labelAt.y})`}>
          <rect
            x={-label.length * 3 - 5}
            y={-8}
            width={label.length * 6 + 10}
            height={16}
            rx={8}
            className="fill-panel"
          />
          <text
            textAnchor="middle"
            y={3.5}
            className={`text-[10px] ${isTaken ? 'fill-accent font-medium' : 'fill-faint'}`}
          >
            {label}
          </text>
        </g>
      )}
    </g>
  )
}

const FILLS = {
  ok: 'fill-ok-tint stroke-ok',
  bad: 'fill-bad-tint stroke-bad',
  warn: 'fill-warn-tint stroke-warn',
  info: 'fill-info-tint stroke-info',
  ask: 'fill-ask-tint stroke-ask',
  dim: 'fill-dim-tint stroke-dim',
} as const
const MARKS: Readonly<Record<string, string>> = { task: '▸', child: '↳', person: '☻', wait: '◷' }

function State({
  placed: { state, x, y, width, height },
  path,
  current,
  heat,
  took,
  chosen,
  choose,
}: GraphProps & { readonly placed: PlacedState }): ReactNode {
  const { t, language } = useText()
  const stay = path?.byState.get(state.name)
  const isCurrent = current?.state === state.name
  const jobs = heat?.get(state.name) ?? 0
  const isDim = path !== undefined && stay === undefined
  const shape = isCurrent
    ? FILLS[toneOf(current.status)]
    : stay === undefined
      ? jobs > 0
        ? 'fill-info-tint stroke-info'
        : 'fill-panel stroke-edge dark:stroke-faint/75'
      : 'fill-tint stroke-accent'
  const facts = [
    stay === undefined ? '' : duration(stay.seconds * 1_000, language),
    stay !== undefined && stay.count > 1 ? `×${stay.count}` : '',
    jobs > 0 ? t('graph.jobs', { n: jobs }) : '',
    took?.get(state.name) ?? '',
  ].filter((part) => part !== '')
  return (
    <g
      role="button"
      tabIndex={0}
      aria-label={[
        shortened(state.name, 20),
        facts.join(' · '),
        ...linesOf(state).map((line) => lineText(line, t('graph.person'))),
      ].join(' ')}
      aria-pressed={chosen === state.name}
      transform={`translate(${x - width / 2} ${y - height / 2})`}
      className={`cursor-pointer ${isDim ? 'opacity-65' : ''}`}
      onClick={() => choose?.(chosen === state.name ? undefined : state.name)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return
        event.preventDefault()
        choose?.(chosen === state.name ? undefined : state.name)
      }}
    >
      <rect
        width={width}
        height={height}
        rx={state.kind === 'end' ? height / 2 : 10}
        strokeWidth={isCurrent || chosen === state.name ? 2.25 : 1.25}
        strokeDasharray={isDim ? '4 3' : undefined}
        className={`${shape} ${chosen === state.name ? 'stroke-accent' : ''}`}
      />
      {isCurrent && current.status !== 'finished' ? (
        <circle
          cx={width - 14}
          cy={16}
          r={4}
          className={`${isMoving(current.status) ? 'pulse' : ''} fill-current text-${toneOf(current.status)}`}
        />
      ) : null}
      <text x={14} y={facts.length === 0 ? 27 : 20} className="fill-ink text-[13px] font-semibold">
        {`${shortened(state.name, 20)} `}
      </text>
      {facts.length === 0 ? null : (
        <text x={14} y={35} className="num fill-soft text-[11px]">
          {`${facts.join(' · ')} `}
        </text>
      )}
      {linesOf(state).map(({ kind, text }, index) => (
        <text key={`${kind} ${text}`} x={14} y={50 + index * 16} className="fill-soft text-[11px]">
          {`${lineText({ kind, text }, t('graph.person'))} `}
        </text>
      ))}
    </g>
  )
}

function lineText({ kind, text }: { readonly kind: string; readonly text: string }, person: string): string {
  return `${MARKS[kind] ?? ''} ${text === '' ? person : shortened(text, 24)}`
}

function isMoving(status: string): boolean {
  return toneOf(status) === 'info'
}

const SCALE_MIN = 0.15
const SCALE_MAX = 3
/** Left free below and above the graph. */
const MARGIN = 16

function useView(
  frame: React.RefObject<HTMLDivElement | null>,
  { width, height }: Layout,
): {
  readonly view: View
  readonly zoom: (by: number) => void
  readonly fit: () => void
  readonly drag: object
} {
  const [view, setView] = useState<View>({ x: 0, y: 0, scale: 1 })
  const held = useRef<{ readonly x: number; readonly y: number; readonly view: View } | undefined>(undefined)
  const fit = (): void => {
    const box = frame.current?.getBoundingClientRect()
    if (box === undefined || width === 0) return
    const scale = Math.min(1.1, box.width / width, (box.height - MARGIN) / height)
    // A graph that would be too small to read begins at its start instead.
    const readable = Math.max(scale, Math.min(0.5, box.width / width))
    setView({
      scale: readable,
      x: (box.width - width * readable) / 2,
      y: readable > scale ? 0 : (box.height - height * readable) / 2,
    })
  }
  useEffect(fit, [width, height])
  const zoomAt = (by: number, x: number, y: number): void =>
    setView((before) => {
      const scale = Math.min(SCALE_MAX, Math.max(SCALE_MIN, before.scale * by))
      const ratio = scale / before.scale
      return { scale, x: x - (x - before.x) * ratio, y: y - (y - before.y) * ratio }
    })
  useEffect(() => {
    const box = frame.current
    const onWheel = (event: WheelEvent): void => {
      if (!event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      const { left = 0, top = 0 } = box?.getBoundingClientRect() ?? {}
      zoomAt(Math.exp(-event.deltaY / 300), event.clientX - left, event.clientY - top)
    }
    box?.addEventListener('wheel', onWheel, { passive: false })
    return () => box?.removeEventListener('wheel', onWheel)
  }, [])
  return {
    view,
    fit,
    zoom: (by) => {
      const box = frame.current?.getBoundingClientRect()
      zoomAt(by, (box?.width ?? 0) / 2, (box?.height ?? 0) / 2)
    },
    drag: {
      onPointerDown: (event: PointerEvent<SVGSVGElement>) => {
        held.current = { x: event.clientX, y: event.clientY, view }
      },
      onPointerMove: (event: PointerEvent<SVGSVGElement>) => {
        if (held.current === undefined || event.buttons === 0) return
        const { x, y, view: begin } = held.current
        setView({ ...begin, x: begin.x + event.clientX - x, y: begin.y + event.clientY - y })
      },
      onPointerUp: () => {
        held.current = undefined
      },
    },
  }
}
