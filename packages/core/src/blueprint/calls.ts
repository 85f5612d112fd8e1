import { ImpresarioError, isEventType, isJsonObject, isTopic, LIMITS, topicProblem } from '@impresario/protocol'
import type { JsonObject, ResourceRequirements, Schema } from '@impresario/protocol'
import type { Action } from '../job/action.ts'
import type { ChildCall, TaskCall, Transitions } from '../job/job.ts'
import { jsonSchemaOf } from './condition.ts'
import { durationMs } from './duration.ts'
import { jsonObjectCopy } from './json-copy.ts'

type Given = Readonly<Record<string, unknown>>

/** What a handler passed, as far as it is an object at all. */
export function optionsOf(value: unknown, name: string): Given {
  if (value !== null && (typeof value === 'object' || typeof value === 'function')) return value as Given
  throw new ImpresarioError('INVALID_BLUEPRINT', `calls ${name} without its options.`)
}

export function transitionsOf(given: Given, name: string): Transitions {
  const checked = targetsIn(given['transitions'], name, 'a transition')
  if (checked.length === 0) {
    throw invalid(`calls ${name} without transitions. Say where each status leads: { success: 'next_state' }.`)
  }
  return Object.fromEntries(checked)
}

/** Where events of the worker lead, if anywhere. */
export function eventTransitionsOf(given: Given): Transitions | undefined {
  const checked = targetsIn(given['eventTransitions'], 'dispatchTask', 'an event transition')
  return checked.length === 0 ? undefined : Object.fromEntries(checked)
}

function targetsIn(transitions: unknown, name: string, what: string): readonly (readonly [string, string])[] {
  const entries = typeof transitions === 'object' && transitions !== null ? Object.entries(transitions) : []
  const checked: [string, string][] = []
  for (const [status, to] of entries) {
    if (to === undefined) continue
    if (typeof to !== 'string') {
      throw invalid(`calls ${name} with ${what} for "${status}" that is no state's name.`)
    }
    checked.push([status, to])
  }
  return checked
}

/** A task as a handler described it, with the defaults filled in and everything checked. */
export function taskCallOf(given: Given): TaskCall {
  const { type, strategy = 'default', priority = 0, maxCost, attemptsMax, retryTimeouts } = given
  if (typeof type !== 'string' || type === '') throw invalid('dispatches a task without a type.')
  if (typeof strategy !== 'string') throw invalid(`dispatches "${type}" with a strategy that is no name.`)
  if (!isFinite(priority)) throw invalid(`dispatches "${type}" with a priority that is no number.`)
  if (maxCost !== undefined && !isFinite(maxCost)) {
    throw invalid(`dispatches "${type}" with a maxCost that is no number.`)
  }
  if (attemptsMax !== undefined && !isCount(attemptsMax)) {
    throw invalid(`dispatches "${type}" with an attemptsMax that is not 1, 2, 3, …`)
  }
  if (retryTimeouts !== undefined && typeof retryTimeouts !== 'boolean') {
    throw invalid(`dispatches "${type}" with a retryTimeouts that is neither true nor false.`)
  }
  const requirements = given['resourceRequirements']
  return {
    kind: 'task',
    type,
    params: dataOf(given['params'], `The params of "${type}"`),
    priority,
    strategy,
    ...(requirements === undefined ? {} : { requirements: requirementsOf(requirements, type) }),
    ...(maxCost === undefined ? {} : { maxCost }),
    ...(attemptsMax === undefined ? {} : { attemptsMax }),
    ...(retryTimeouts === undefined ? {} : { retryTimeouts }),
    ...timeoutsOf(given),
  }
}

function timeoutsOf(given: Given): Pick<TaskCall, 'dispatchTimeoutMs' | 'resultTimeoutMs' | 'runTimeoutMs'> {
  const dispatchTimeoutMs = spanOf(given, 'dispatchTimeout')
  const resultTimeoutMs = spanOf(given, 'resultTimeout')
  const runTimeoutMs = spanOf(given, 'runTimeout')
  return {
    ...(dispatchTimeoutMs === undefined ? {} : { dispatchTimeoutMs }),
    ...(resultTimeoutMs === undefined ? {} : { resultTimeoutMs }),
    ...(runTimeoutMs === undefined ? {} : { runTimeoutMs }),
  }
}

export function childCallOf(given: Given): ChildCall {
  const { blueprint } = given
  if (typeof blueprint !== 'string' || blueprint === '') throw invalid('runs a blueprint without its name.')
  return { kind: 'child', blueprint, initialData: dataOf(given['initialData'], `The initialData for "${blueprint}"`) }
}

export function spanOf(given: Given, key: string): number | undefined {
  const span = given[key]
  if (span === undefined) return undefined
  return durationMs(typeof span === 'number' || typeof span === 'string' ? span : Number.NaN, key)
}

/** What a handler waits for, with everything checked. `topics`: those that the blueprint declares, if it declares any. */
export function eventWaitOf(
  event: unknown,
  given: Given,
  topics: readonly string[] | undefined,
): Omit<Extract<Action, { type: 'event' }>, 'type'> {
  const topic = isEventType(event) ? event.topic : event
  if (!isTopic(topic)) throw invalid(`calls waitForEvent: ${topicProblem(topic)}`)
  if (topics === undefined ? isEventType(event) : !topics.includes(topic)) {
    throw invalid(`waits for "${topic}", which is not among the blueprint's \`events\`. Add it there.`)
  }
  const timeoutMs = spanOf(given, 'timeout')
  const { match: key } = given
  if (key !== undefined && (typeof key !== 'string' || key === '' || key.length > LIMITS.identifierCharsMax)) {
    throw invalid(`waits for "${topic}" with a match that is no text of 1 to ${LIMITS.identifierCharsMax} characters.`)
  }
  const transitions = transitionsOf(given, 'waitForEvent')
  if (transitions['received'] === undefined) {
    throw invalid(`waits for "${topic}" without the transition \`received\`. Say where the event leads.`)
  }
  return {
    topic,
    transitions,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(key === undefined ? {} : { key }),
  }
}

/** How long to sleep: for a span, or until a moment. */
export function sleepOf(time: unknown): { readonly afterMs: number } | { readonly until: number } {
  if (typeof time === 'number' || typeof time === 'string') return { afterMs: durationMs(time, 'The time to sleep') }
  const until: unknown = isInstant(time) ? time.getTime() : undefined
  if (typeof until === 'number' && Number.isFinite(until)) return { until }
  throw invalid("calls sleep without a time. Give a span such as '3d', or a Date.")
}

function isInstant(value: unknown): value is { getTime: () => unknown } {
  return typeof value === 'object' && value !== null && 'getTime' in value && typeof value.getTime === 'function'
}

/** A form is kept with its question and sent with every list of questions. */
const FORM_CHARS_MAX = 16_384

/** What is asked for beside a decision, and by which decisions. */
export function formOf(
  given: Given,
  transitions: Transitions,
): { readonly form?: JsonObject; readonly formFor?: readonly string[] } {
  const { form: asked, formFor } = given
  if (asked === undefined) {
    if (formFor !== undefined) throw invalid('gives awaitHumanApproval `formFor` without `form`.')
    return {}
  }
  const { $schema: _, ...form } = jsonObjectCopy(isSchema(asked) ? jsonSchemaOf(asked, 'input') : asked, 'The form')
  if (form['type'] !== 'object' || !isJsonObject(form['properties'])) {
    throw invalid('gives awaitHumanApproval a `form` that is no schema of an object with properties.')
  }
  if (JSON.stringify(form).length > FORM_CHARS_MAX) {
    throw invalid(`gives awaitHumanApproval a \`form\` of more than ${FORM_CHARS_MAX} characters.`)
  }
  const decisions = Object.keys(transitions).filter((name) => name !== 'expired')
  if (formFor === undefined) return { form, formFor: decisions.filter((name) => name !== 'rejected') }
  if (!Array.isArray(formFor)) throw invalid('gives awaitHumanApproval a `formFor` that is no list of decisions.')
  const names = formFor.map(String)
  const unknown = names.find((name) => !decisions.includes(name))
  if (unknown !== undefined) {
    throw invalid(`names "${unknown}" in \`formFor\`, which is no decision. There are ${decisions.join(', ')}.`)
  }
  return { form, formFor: names }
}

function isSchema(value: unknown): value is Schema {
  return (typeof value === 'object' || typeof value === 'function') && value !== null && '~standard' in value
}

/** When a person who was asked is reminded. */
export function remindersOf(given: Given): { readonly remindAfterMs?: number; readonly remindEveryMs?: number } {
  const remindAfterMs = spanOf(given, 'remindAfter')
  const remindEveryMs = spanOf(given, 'remindEvery')
  for (const [key, ms] of Object.entries({ remindAfter: remindAfterMs, remindEvery: remindEveryMs })) {
    if (ms === undefined || ms >= LIMITS.remindMsMin) continue
    throw invalid(`reminds after ${ms} ms. Give ${key} at least ${LIMITS.remindMsMin / 1_000} s.`)
  }
  return {
    ...(remindAfterMs === undefined ? {} : { remindAfterMs }),
    ...(remindEveryMs === undefined ? {} : { remindEveryMs }),
  }
}

function dataOf(value: unknown, place: string): JsonObject {
  return value === undefined ? {} : jsonObjectCopy(value, place)
}

/** The compiler has checked its shape, and the matcher ignores what it does not know. */
function requirementsOf(value: unknown, type: string): ResourceRequirements {
  return jsonObjectCopy(value, `The resourceRequirements of "${type}"`)
}

function isFinite(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1
}

function invalid(sentence: string): ImpresarioError {
  return new ImpresarioError('INVALID_BLUEPRINT', sentence)
}
