import type { Job } from '@impresario/client'
import { paintActivity } from './screen.ts'
import type { Screen } from './screen.ts'
import { pad, visibleWidth } from './table.ts'
import { span } from './time.ts'

type Moment = Job['trail'][number]

/** One moment of a job as a line: when, where, what. */
export function momentLine(screen: Screen, job: Job, entry: Moment): string {
  const when = screen.paint('dim', pad(`+${span(entry.at - job.createdAt)}`, 8, 'right'))
  const where = pad(entry.state ?? '', 12)
  return `${when}  ${where}  ${describeMoment(screen, entry)}`.trimEnd()
}

const SYMBOLS: Readonly<Record<string, readonly [symbol: string, style: 'green' | 'red' | 'yellow' | 'cyan' | 'dim']>> =
  {
    job_created: ['•', 'dim'],
    state_started: ['•', 'dim'],
    task_dispatched: ['→', 'cyan'],
    child_started: ['→', 'cyan'],
    task_finished: ['✓', 'green'],
    child_ended: ['✓', 'green'],
    decision_made: ['✓', 'green'],
    job_finished: ['✓', 'green'],
    approval_requested: ['?', 'yellow'],
    sleep_started: ['z', 'dim'],
    event_awaited: ['?', 'dim'],
    event_received: ['✓', 'green'],
    job_quarantined: ['!', 'red'],
    job_failed: ['✗', 'red'],
    job_error: ['✗', 'red'],
    job_cancelled: ['✗', 'red'],
    task_failed: ['✗', 'red'],
    state_failed: ['✗', 'red'],
  }

function describeMoment(screen: Screen, { event, note }: Pick<Moment, 'event' | 'note'>): string {
  const [symbol, style] = SYMBOLS[event] ?? ['•', 'dim']
  const words = event.replaceAll('_', ' ')
  return `${screen.paint(style, symbol)} ${words}${note === undefined ? '' : `: ${note}`}`
}

/**
 * Gives each moment of a job once, although every body repeats the newest of them and drops the oldest. Moments are told
 * apart by their time, and those of the same time by how many have been seen.
 */
export class TrailReader {
  #lastAt = -Infinity
  #seenAtLast = 0

  next(trail: readonly Moment[]): readonly Moment[] {
    let same = 0
    const fresh = trail.filter((entry) => {
      if (entry.at !== this.#lastAt) return entry.at > this.#lastAt
      same += 1
      return same > this.#seenAtLast
    })
    const last = fresh.at(-1)
    if (last === undefined) return fresh
    this.#lastAt = last.at
    this.#seenAtLast = trail.filter((entry) => entry.at === last.at).length
    return fresh
  }
}

const BAR_WIDTH = 24
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

/** The present of a job in one line: its state, and how far the task is. */
export function statusLine(screen: Screen, job: Job, frame: number): string {
  const spinner = screen.paint('cyan', FRAMES[frame % FRAMES.length] ?? '')
  const parts = [`${spinner} ${job.currentState}`, paintActivity(screen, job)]
  if (job.progress !== undefined) parts.push(bar(screen, job.progress))
  if (job.progressMessage !== undefined) parts.push(screen.paint('dim', job.progressMessage))
  const line = parts.join('  ')
  return visibleWidth(line) < screen.columns ? line : parts.slice(0, 2).join('  ')
}

function bar(screen: Screen, fraction: number): string {
  const done = Math.round(Math.min(1, Math.max(0, fraction)) * BAR_WIDTH)
  const percent = `${Math.round(fraction * 100)} %`
  return `${screen.paint('cyan', '█'.repeat(done))}${screen.paint('dim', '░'.repeat(BAR_WIDTH - done))} ${percent}`
}

const CLEAR_LINE = '\r\u001B[2K'

/** Lines that stay, above one line that changes; without a terminal only the lines that stay. */
export class LiveLine {
  readonly #screen: Screen
  readonly #write: (text: string) => void
  #timer: NodeJS.Timeout | undefined
  #frame = 0
  #text: ((frame: number) => string) | undefined

  constructor(screen: Screen, write: (text: string) => void) {
    this.#screen = screen
    this.#write = write
  }

  print(line: string): void {
    this.#clear()
    this.#screen.out(line)
    this.#draw()
  }

  /** Shows this below everything until the next one. */
  show(text: (frame: number) => string): void {
    if (!this.#screen.isTerminal) return
    this.#text = text
    this.#draw()
    this.#timer ??= setInterval(() => {
      this.#frame += 1
      this.#draw()
    }, 100).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#clear()
    this.#text = undefined
  }

  #draw(): void {
    if (this.#text !== undefined) this.#write(CLEAR_LINE + this.#text(this.#frame))
  }

  #clear(): void {
    if (this.#text !== undefined) this.#write(CLEAR_LINE)
  }
}
