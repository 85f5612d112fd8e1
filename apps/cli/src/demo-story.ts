import type { Choice, Job } from '@impresario/client'
import type { Screen } from './screen.ts'
import { pad } from './table.ts'
import { TrailReader } from './watch.ts'

type Moment = Job['trail'][number]

const STATE_WIDTH = 11

/** Tells the demo's job as it runs: the states on the left, what happens in them on the right. */
export class DemoStory {
  readonly #screen: Screen
  readonly #reader = new TrailReader()
  /** A state is written in front of the first thing that happens in it. */
  #state: string | undefined

  constructor(screen: Screen) {
    this.#screen = screen
  }

  /** Tells what is new in the job. */
  catchUp(job: Job): void {
    for (const moment of this.#reader.next(job.trail)) this.#tell(moment)
  }

  /** A worker has begun a task, for the reason that the explanation gives. */
  taskTaken(type: string, workerId: string, explanation: Choice | undefined): void {
    const { paint } = this.#screen
    const why = explanation === undefined ? undefined : reason(explanation, workerId)
    const end = why === undefined ? '' : `  ${paint('dim', `(${why})`)}`
    this.line(`${pad(type, 17)} → ${paint('cyan', pad(workerId, 9))}${end}`)
  }

  line(text: string): void {
    const state = pad(this.#state === undefined ? '' : this.#screen.paint('bold', this.#state), STATE_WIDTH)
    this.#state = undefined
    this.#screen.out(`  ${state} ${text}`.trimEnd())
  }

  #tell({ event, note = '', state }: Moment): void {
    const { paint } = this.#screen
    switch (event) {
      case 'job_created':
      case 'state_started':
        if (this.#state !== undefined) this.line('')
        this.#state = state ?? ''
        break
      case 'approval_requested':
        this.line(`${paint('yellow', '?')} ${note}`)
        break
      case 'child_started':
        this.line(paint('dim', `a job of its own: ${note}`))
        break
      case 'task_dispatched':
        if (/^\d+ branches/.test(note)) this.line(paint('dim', note))
        break
      case 'decision_made':
        this.line(`${paint('green', '✓')} ${note}`)
        break
      case 'task_failed':
      case 'state_failed':
      case 'job_failed':
      case 'job_cancelled':
      case 'job_quarantined':
        this.line(`${paint('red', '✗')} ${event.replaceAll('_', ' ')}: ${note}`)
        break
      case 'job_finished':
        this.line(paint('green', '✓ finished'))
        break
      default:
    }
  }
}

/** Why this worker, in a few words. The server can tell it at length: `impresario explain`. */
function reason({ strategy, workers, candidates }: Choice, workerId: string): string | undefined {
  const score = workers.find((one) => one.workerId === workerId)?.score
  if (strategy === 'cheapest' && score?.cost !== undefined && score.cost !== null) {
    return `cheapest of ${candidates}, $${score.cost.toFixed(2)}/s`
  }
  if (strategy === 'least_connections') return 'least busy'
  return undefined
}
