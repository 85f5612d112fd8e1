import { ImpresarioError } from '@impresario/protocol'
import type { TaskCall } from '../job/job.ts'
import { costOf } from './demand.ts'
import type { Candidate } from './demand.ts'

/** What is asked of every candidate: worked out once for each choice. */
export interface Question {
  readonly type: string
  /** The model that the task names in its params. */
  readonly model: string | undefined
  /** Who got the last task of this type. */
  readonly last: string | undefined
}

/** One point of view on a candidate. */
export interface Criterion {
  readonly name: string
  /** Smaller is better. Infinity is the worst; NaN counts as that. */
  measure(candidate: Candidate, question: Question): number
  /** It depends on nothing but the worker's record, its load, and the task's type and model: its order can be kept. */
  readonly isSteady?: boolean
  /** Why the first of two goes before the second, after "it". */
  because(candidate: Candidate, next: Candidate, question: Question): string
}

/**
 * A way to choose among workers that all could do the task: criteria, the weightiest first. A later
 * one counts only where all before it are equal, and the id settles what is left. So every strategy
 * is a total order, is found in one pass, and can be explained without code of its own.
 */
export interface Strategy {
  readonly name: string
  readonly criteria: readonly Criterion[]
}

export type Strategies = ReadonlyMap<string, Strategy>

/** Holds the skill or the model that the task needs already in memory. */
const warm: Criterion = {
  name: 'warm',
  isSteady: true,
  measure: ({ worker }, question) => (isWarm(worker, question) ? 0 : 1),
  because: (_candidate, next) => `is warm and '${next.worker.id}' is not`,
}

/** An unknown price sorts after every known one: a worker must not get work because it hides its price. */
const cost: Criterion = {
  name: 'cost',
  isSteady: true,
  measure: ({ worker }, { type }) => costOf(worker, type) ?? Infinity,
  because: ({ worker }, next, { type }) => {
    const other = costOf(next.worker, type)
    const than = other === undefined ? 'names no price' : `costs ${other}`
    return `costs ${costOf(worker, type)} per second and '${next.worker.id}' ${than}`
  },
}

const reputation: Criterion = {
  name: 'reputation',
  isSteady: true,
  measure: ({ worker }) => -worker.reputation,
  because: ({ worker }, next) =>
    `has the reputation ${worker.reputation} and '${next.worker.id}' has ${next.worker.reputation}`,
}

const load: Criterion = {
  name: 'load',
  isSteady: true,
  measure: (candidate) => candidate.load,
  because: (candidate, next) => `has ${candidate.load} tasks and '${next.worker.id}' has ${next.load}`,
}

/** Cost divided by reputation. A worker without reputation comes last, whatever it costs, because `reputation` follows. */
const value: Criterion = {
  name: 'value',
  isSteady: true,
  measure: ({ worker }, { type }) =>
    worker.reputation > 0 ? (costOf(worker, type) ?? Infinity) / worker.reputation : Infinity,
  because: (_candidate, next) => `asks less for its reputation than '${next.worker.id}'`,
}

/**
 * Who has been registered for longer. A worker that crashes at every task and comes back under a new name is always the
 * newest, so it does not get a task again and again while others wait for one.
 */
const seniority: Criterion = {
  name: 'seniority',
  isSteady: true,
  measure: ({ worker }) => worker.registeredAt,
  because: (_candidate, next) => `has been registered for longer than '${next.worker.id}'`,
}

/**
 * Who comes next in rotation: the ids form a ring, and the next one after the last is chosen. Unlike
 * a counter taken modulo the number of candidates, this skips no worker when workers come and go.
 */
const rotation: Criterion = {
  // The name is in answers of the explain route, and stays.
  name: 'turn',
  measure: ({ worker }, { last }) => (last === undefined || worker.id > last ? 0 : 1),
  because: (_candidate, _next, { last }) => `comes after '${last}', who had the last task of this type`,
}

/** What strategies are made of, for those that are added from outside. */
export const CRITERIA = { warm, cost, reputation, load, value, seniority, rotation } as const

/** Every strategy there is. A new one is a new line here. */
export const STRATEGIES: Strategies = strategySet([
  { name: 'default', criteria: [warm, cost, reputation, load, seniority] },
  { name: 'round_robin', criteria: [rotation] },
  { name: 'least_connections', criteria: [load, warm, cost, reputation, seniority] },
  { name: 'cheapest', criteria: [cost, warm, reputation, load, seniority] },
  { name: 'best_value', criteria: [value, reputation, warm, load, seniority] },
])

export function strategySet(list: readonly Strategy[]): Strategies {
  return new Map(list.map((strategy) => [strategy.name, strategy]))
}

export function isStrategyName(name: string, known: Strategies = STRATEGIES): boolean {
  return known.has(name)
}

export function strategyNamed(name: string, known: Strategies = STRATEGIES): Strategy {
  const strategy = known.get(name)
  if (strategy !== undefined) return strategy
  const names = [...known.keys()].join(', ')
  throw new ImpresarioError('INVALID_BLUEPRINT', `There is no dispatch strategy '${name}'. Known are: ${names}.`, {
    details: { strategy: name },
  })
}

/** Whether the choice depends on who was chosen before. */
export function isRotating({ criteria }: Strategy): boolean {
  return criteria.includes(rotation)
}

export function questionOf(call: Pick<TaskCall, 'type' | 'params'>, last: string | undefined): Question {
  const model = call.params['model_name'] ?? call.params['model']
  return { type: call.type, model: typeof model === 'string' ? model : undefined, last }
}

export function isWarm(worker: Candidate['worker'], { type, model }: Question): boolean {
  return (
    (worker.hotSkills.length > 0 && worker.hotSkills.includes(type)) ||
    (model !== undefined && worker.hotModels.includes(model))
  )
}

export function measure(criterion: Criterion, candidate: Candidate, question: Question): number {
  const measured = criterion.measure(candidate, question)
  return Number.isNaN(measured) ? Infinity : measured
}
