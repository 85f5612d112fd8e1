import { ExactNumber, stringifyExact } from '@impresario/client'
import type { Choice, ExplainedTask, Explanation, WorkerInfo } from '@impresario/client'
import { COMMAND, EXIT } from './failure.ts'
import { jobIdOf } from './job-prefix.ts'
import { childrenPage, nextStep } from './jobs.ts'
import { paintStatus, printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { facts, table } from './table.ts'
import { ago, localTime, nowSeconds } from './time.ts'

export function listWorkers(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const workers = await client.workers()
    if (screen.isJson) printJson(screen, workers)
    else if (workers.length === 0) screen.out('There are no workers. See docs/learn/quick-start.md to write one.')
    else {
      const rows = table(screen, workers, [
        { title: 'worker', cell: (worker) => worker.workerId },
        { title: 'type', cell: (worker) => worker.workerType },
        { title: 'status', cell: (worker) => paintStatus(screen, worker.status) },
        { title: 'load', cell: (worker) => text(worker['load']), align: 'right' },
        { title: 'reputation', cell: (worker) => text(worker['reputation']), align: 'right' },
        { title: 'cost/s', cell: (worker) => text(worker['costPerSecond']), align: 'right' },
        { title: 'skills', cell: (worker) => worker.supportedSkills.join(', ') },
      ])
      screen.out(rows)
    }
    return EXIT.ok
  })
}

export function showWorker(workerId: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const worker = await client.worker(workerId)
    if (screen.isJson) printJson(screen, worker)
    else screen.out(workerPage(screen, worker))
    return EXIT.ok
  })
}

function workerPage(screen: Screen, worker: WorkerInfo): string {
  const now = nowSeconds()
  const when = (at: unknown): string | undefined => (typeof at === 'number' ? ago(at, now) : undefined)
  const list = (value: unknown): string | undefined => (Array.isArray(value) ? value.map(text).join(', ') : undefined)
  const json = (value: unknown): string | undefined =>
    typeof value !== 'object' || value === null || Object.keys(value).length === 0 ? undefined : stringifyExact(value)
  return facts(screen, [
    ['worker', worker.workerId],
    ['type', worker.workerType],
    ['status', paintStatus(screen, worker.status)],
    ['skills', list(worker.supportedSkills)],
    ['ready for', list(worker['availableSkills'])],
    ['warm', list(worker['hotSkills'])],
    ['load', `${text(worker['load'])} of ${text(worker['maxConcurrentTasks'] ?? 'as many as it asks for')}`],
    ['reputation', text(worker['reputation'])],
    ['cost/s', text(worker['costPerSecond'])],
    ['cost by skill', json(worker['costPerSkill'])],
    ['resources', json(worker['resources'])],
    ['models', list(worker['installedModels'])],
    ['software', json(worker['installedSoftware'])],
    ['registered', when(worker['registeredAt'])],
    ['seen', when(worker['seenAt'])],
  ])
}

/** What the live workers can do. */
export function listSkills(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const catalogue = await client.catalogue()
    const skills = Object.entries(catalogue)
    if (screen.isJson) printJson(screen, new Map(skills))
    else if (skills.length === 0) screen.out('There are no workers, so there are no skills.')
    else {
      const rows = table(screen, skills, [
        { title: 'skill', cell: ([name]) => name },
        { title: 'workers', cell: ([, skill]) => String(skill.providersCount), align: 'right' },
        { title: 'reputation', cell: ([, skill]) => text(skill.averageReputation), align: 'right' },
        { title: 'types', cell: ([, skill]) => skill.workerTypes.join(', ') },
        { title: 'about', cell: ([, skill]) => (skill.contract === null ? '' : text(skill.contract['description'])) },
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

interface State {
  readonly name?: unknown
  readonly kind?: unknown
  readonly transitions?: readonly { readonly to?: unknown; readonly label?: unknown }[]
}

/** Boundary: the states of a blueprint have this shape. */
function statesOf(states: unknown): readonly State[] {
  return Array.isArray(states) ? (states as readonly State[]) : []
}

export function showBlueprint(
  name: string,
  options: GlobalOptions & { readonly blueprintVersion?: number },
): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const blueprint = await client.blueprint(name, options.blueprintVersion)
    if (screen.isJson) {
      printJson(screen, blueprint)
      return EXIT.ok
    }
    const about = facts(screen, [
      ['blueprint', `${blueprint.name} (version ${blueprint.version})`],
      ['endpoint', blueprint['endpoint'] === null ? undefined : text(blueprint['endpoint'])],
      ['start', text(blueprint['start'])],
    ])
    const rows = table(screen, statesOf(blueprint['states']), [
      { title: 'state', cell: (state) => text(state.name) },
      { title: 'kind', cell: (state) => text(state.kind) },
      {
        title: 'leads to',
        cell: (state) => [...new Set((state.transitions ?? []).map(({ to }) => text(to)))].join(', '),
      },
    ])
    screen.out(`${about}\n\n${rows}`)
    return EXIT.ok
  })
}

function text(value: unknown): string {
  return ['string', 'number', 'bigint'].includes(typeof value) || value instanceof ExactNumber ? String(value) : '–'
}

function stateNames(states: unknown): string {
  return statesOf(states)
    .map((state) => text(state.name))
    .join(', ')
}

export function explainJob(given: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const answer = await client.explain(await jobIdOf(client, given))
    if (screen.isJson) printJson(screen, answer)
    else screen.out(explanationPage(screen, answer))
    return EXIT.ok
  })
}

function explanationPage(screen: Screen, body: Explanation): string {
  const { children, parentJobId: parent } = body
  const of = parent === null ? '' : `\nIt is a child of ${parent}, which waits for it: ${COMMAND} explain ${parent}`
  const head = `${body.currentState}  ${paintStatus(screen, body.status)}${of}`
  if (body.tasks.length === 0) {
    const next = nextStep({ id: body.jobId, status: body.status }, children)
    const what = children.length === 0 ? (body.summary ?? 'No task is under way.') : childrenPage(screen, children)
    return [head, what, ...(next === undefined ? [] : [next])].join('\n')
  }
  const tasks = body.tasks.map((task) => {
    const by = task.worker === null ? '' : ` at ${task.worker}`
    const title = `${screen.paint('bold', task.type)}  ${task.where}${by}${tryText(task)}`
    return task.explanation === null ? title : `${title}\n${whyPage(screen, task.explanation)}`
  })
  return [head, ...tasks, ...(children.length === 0 ? [] : [childrenPage(screen, children)])].join('\n\n')
}

/** What is worth saying of a try: that it is not the first one, why, and until when its result must be there. */
function tryText({ attempt, deadline, lastError: error }: ExplainedTask): string {
  const count = attempt > 1 ? `, try ${attempt}` : ''
  const until = deadline === null ? '' : `, result due by ${localTime(deadline)}`
  const why = error === null ? '' : `\nThe try before it failed: ${error.code}: ${error.message}`
  return `${count}${until}${why}`
}

function whyPage(screen: Screen, explanation: Choice): string {
  const rows = table(screen, explanation.workers, [
    {
      title: '',
      cell: (one) => (one.place === undefined ? screen.paint('red', '✗') : String(one.place)),
      align: 'right',
    },
    { title: 'worker', cell: (one) => one.workerId },
    { title: 'cost/s', cell: (one) => text(one.score?.cost), align: 'right' },
    { title: 'reputation', cell: (one) => text(one.score?.reputation), align: 'right' },
    { title: 'load', cell: (one) => text(one.score?.load), align: 'right' },
    { title: 'why not', cell: (one) => one.reasons?.join(' ') ?? '' },
  ])
  return explanation.workers.length === 0 ? explanation.summary : `${explanation.summary}\n${rows}`
}
