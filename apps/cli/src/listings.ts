import { EXIT } from './failure.ts'
import { paintStatus, printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { table } from './table.ts'

export function listWorkers(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const workers = await client.workers()
    if (screen.isJson) printJson(screen, workers)
    else if (workers.length === 0) screen.out('No worker is here. See docs/learn/quick-start.md for how to write one.')
    else {
      const rows = table(screen, workers, [
        { title: 'worker', cell: (worker) => worker.worker_id },
        { title: 'type', cell: (worker) => worker.worker_type },
        { title: 'status', cell: (worker) => paintStatus(screen, worker.status) },
        { title: 'load', cell: (worker) => text(worker['load']), align: 'right' },
        { title: 'cost/s', cell: (worker) => text(worker['cost_per_second']), align: 'right' },
        { title: 'skills', cell: (worker) => worker.supported_skills.join(', ') },
      ])
      screen.out(rows)
    }
    return EXIT.ok
  })
}

export function listBlueprints(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const blueprints = await client.blueprints()
    if (screen.isJson) printJson(screen, blueprints)
    else if (blueprints.length === 0) screen.out('There are no blueprints. Name their directory with BLUEPRINTS_DIR.')
    else {
      const rows = table(screen, blueprints, [
        { title: 'blueprint', cell: (blueprint) => blueprint.name },
        { title: 'version', cell: (blueprint) => String(blueprint.version), align: 'right' },
        { title: 'start', cell: (blueprint) => text(blueprint['start']) },
        { title: 'states', cell: (blueprint) => stateNames(blueprint['states']) },
      ])
      screen.out(rows)
    }
    return EXIT.ok
  })
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '–'
}

function stateNames(states: unknown): string {
  if (!Array.isArray(states)) return '–'
  return states.map((state: { readonly name?: unknown }) => text(state.name)).join(', ')
}

/** The parts of an explanation that are shown; `--json` prints all of it. */
export interface ExplainBody {
  readonly status: string
  readonly current_state: string
  readonly tasks: readonly {
    readonly task_id: string
    readonly type: string
    readonly where: string
    readonly worker: string | null
    readonly explanation: Explanation | null
  }[]
}

export interface Explanation {
  readonly strategy: string
  readonly chosen: string | null
  readonly summary: string
  readonly candidates: number
  readonly workers: readonly Verdict[]
}

interface Verdict {
  readonly worker_id: string
  readonly verdict: 'candidate' | 'filtered'
  readonly place?: number
  readonly score?: {
    readonly warm: boolean
    readonly cost: number | null
    readonly reputation: number
    readonly load: number
  }
  readonly reasons?: readonly string[]
}

/** Boundary: the server's explanation has this shape. */
export function explainBody(body: unknown): ExplainBody {
  return body as ExplainBody
}

export function explainJob(jobId: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const answer = await client.explain(jobId)
    if (screen.isJson) printJson(screen, answer)
    else screen.out(explanationPage(screen, explainBody(answer)))
    return EXIT.ok
  })
}

function explanationPage(screen: Screen, body: ExplainBody): string {
  const head = `${body.current_state}  ${paintStatus(screen, body.status)}`
  if (body.tasks.length === 0) return `${head}\nNo task is under way.`
  const tasks = body.tasks.map((task) => {
    const by = task.worker === null ? '' : ` at ${task.worker}`
    const title = `${screen.paint('bold', task.type)}  ${task.where}${by}`
    return task.explanation === null ? title : `${title}\n${whyPage(screen, task.explanation)}`
  })
  return [head, ...tasks].join('\n\n')
}

function whyPage(screen: Screen, explanation: Explanation): string {
  const rows = table(screen, explanation.workers, [
    {
      title: '',
      cell: (one) => (one.place === undefined ? screen.paint('red', '✗') : String(one.place)),
      align: 'right',
    },
    { title: 'worker', cell: (one) => one.worker_id },
    { title: 'cost/s', cell: (one) => text(one.score?.cost), align: 'right' },
    { title: 'reputation', cell: (one) => text(one.score?.reputation), align: 'right' },
    { title: 'load', cell: (one) => text(one.score?.load), align: 'right' },
    { title: 'why not', cell: (one) => one.reasons?.join('; ') ?? '' },
  ])
  return explanation.workers.length === 0 ? explanation.summary : `${explanation.summary}\n${rows}`
}
