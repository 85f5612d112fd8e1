import { styleText } from 'node:util'
import { stringifyExact, toWire } from '@impresario/client/light'
import type { Job } from '@impresario/client'

type Style = Parameters<typeof styleText>[0]

/** Where a command writes. Results go to `out`, everything that only helps the reader goes to `err`. */
export interface Screen {
  readonly isTerminal: boolean
  readonly isJson: boolean
  readonly columns: number
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Colours the text, where colours are wanted. */
  readonly paint: (style: Style, text: string) => string
}

interface Stream {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export interface ScreenOptions {
  readonly stdout: Stream
  readonly stderr: Stream
  readonly env: Readonly<Record<string, string | undefined>>
  readonly isJson?: boolean
}

export function createScreen({ stdout, stderr, env, isJson = false }: ScreenOptions): Screen {
  const isTerminal = stdout.isTTY === true && env['TERM'] !== 'dumb'
  const isColoured = !isJson && wantsColour(isTerminal, env)
  return {
    isTerminal: isTerminal && !isJson,
    isJson,
    columns: stdout.columns ?? 100,
    out: (text) => {
      stdout.write(`${text}\n`)
    },
    err: (text) => {
      stderr.write(`${text}\n`)
    },
    // Whether to colour is decided above; the text itself is coloured in any case.
    paint: (style, text) => (isColoured ? styleText(style, text, { validateStream: false }) : text),
  }
}

/** Any value but the empty one counts, as no-color.org asks; FORCE_COLOR serves those who pipe into a pager. */
function wantsColour(isTerminal: boolean, env: ScreenOptions['env']): boolean {
  const { NO_COLOR: no = '', FORCE_COLOR: force = '' } = env
  if (no !== '') return false
  return isTerminal || (force !== '' && force !== '0')
}

/** In the shapes of the HTTP API. The keys of a map are names that users chose, and stay as they are. */
export function printJson(screen: Screen, value: unknown): void {
  const shown =
    value instanceof Map
      ? Object.fromEntries([...value].map(([name, one]: [string, unknown]) => [name, toWire(one)]))
      : toWire(value)
  screen.out(stringifyExact(shown, 2))
}

const STATUS_STYLES: Readonly<Record<string, Style>> = {
  finished: 'green',
  idle: 'green',
  failed: 'red',
  error: 'red',
  quarantined: 'magenta',
  cancelled: 'gray',
  offline: 'gray',
  waiting_for_human: 'yellow',
  delivered: 'green',
  active: 'green',
  pending: 'yellow',
  open: 'yellow',
  half_open: 'yellow',
  disabled: 'red',
}

export function paintStatus(screen: Screen, status: string): string {
  return screen.paint(STATUS_STYLES[status] ?? 'cyan', status.replaceAll('_', ' '))
}

/** What a job is doing, for people: its status, and where its work is when that is known. */
export function paintActivity(screen: Screen, job: Pick<Job, 'status' | 'work'>): string {
  const { status, work } = job
  const text = work === undefined ? undefined : workText(work)
  if (text === undefined) return paintStatus(screen, status)
  return screen.paint(work !== undefined && work.running > 0 ? 'cyan' : 'yellow', text)
}

/** Workers that are named in one line. */
const WORKERS_SHOWN_MAX = 3

function workText(work: NonNullable<Job['work']>): string | undefined {
  const { waiting, delayed, running, workers, children, unseen = 0 } = work
  const more = workers.length > WORKERS_SHOWN_MAX ? ', …' : ''
  const at = workers.length === 0 ? '' : ` at ${workers.slice(0, WORKERS_SHOWN_MAX).join(', ')}${more}`
  if (waiting + delayed + running + unseen === 0) return children.length > 0 ? 'waiting for child' : undefined
  if (waiting + delayed + running + unseen === 1 && children.length === 0) {
    if (running === 1) return `running${at}`
    return delayed === 1 ? 'waiting for its next try' : 'waiting for a worker'
  }
  const parts = [
    running > 0 ? `${running} running${at}` : undefined,
    waiting > 0 ? `${waiting} waiting for a worker` : undefined,
    delayed > 0 ? `${delayed} waiting for the next try` : undefined,
    unseen > 0 ? `${unseen} more` : undefined,
  ]
  return parts.filter((part) => part !== undefined).join(', ')
}
