import type { Step } from '@impresario/automations'
import { nearWord } from '@impresario/core'
import type { WorkerRecord } from '@impresario/core'
import { toolTaskType } from './tool-worker.ts'

/** The beginning of the names under which pipelines use the tasks of workers. */
export const TASK = 'task.'

/** A task that some live workers do, as pipelines can use it. */
export interface WorkerTask {
  readonly name: string
  readonly workers: number
}

type Workers = Iterable<Pick<WorkerRecord, 'skills'>>

/** Tasks that one list shows. More have no place in a list that people and assistants read. */
const TASKS_MAX = 1_000

/** What the live workers do, by name. */
export function workerTasks(workers: Workers): readonly WorkerTask[] {
  const counted = new Map<string, number>()
  for (const { skills } of workers) {
    for (const skill of skills) if (!isInternal(skill)) counted.set(skill, (counted.get(skill) ?? 0) + 1)
  }
  return [...counted]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, TASKS_MAX)
    .map(([skill, count]) => ({ name: `${TASK}${skill}`, workers: count }))
}

/**
 * Steps that no live worker can do. That is no error: the worker may come later, and the task waits for it. Mostly it is a
 * name that was mistyped.
 */
export function unknownTasks(steps: readonly Step[], workers: Workers): readonly string[] {
  const used = tasksIn(steps)
  if (used.length === 0) return []
  const known = new Set([...workers].flatMap(({ skills }) => skills.filter((skill) => !isInternal(skill))))
  return used
    .filter(({ skill }) => !known.has(skill))
    .map(({ step, skill }) => {
      const meant = nearWord(skill, [...known])
      const advice = meant === undefined ? 'The step waits until one is connected.' : `Did you mean "${TASK}${meant}"?`
      return `Step "${step}": no connected worker knows the task "${TASK}${skill}". ${advice}`
    })
}

function tasksIn(steps: readonly Step[]): readonly { readonly step: string; readonly skill: string }[] {
  return steps.flatMap(({ id, body }) => {
    if (body.kind === 'pipeline') return tasksIn(body.steps)
    if (body.kind === 'parallel') return tasksIn(body.branches)
    const isTask = body.kind === 'tool' && body.uses.startsWith(TASK)
    return isTask ? [{ step: id, skill: body.uses.slice(TASK.length) }] : []
  })
}

function isInternal(skill: string): boolean {
  return skill.startsWith(toolTaskType(''))
}
