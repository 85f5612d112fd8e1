import { isOfAutomation, runBlueprintName, runViewOf, timeTriggers, usageOfRun } from '@impresario/automations'
import type { Automations, AutomationRecord } from '@impresario/automations'
import { isEnded } from '@impresario/core'
import type { Storage } from '@impresario/core'
import { anyOf, occurrencesBetween } from '@impresario/recurrence'
import type { Finding } from '../checkers/finding.ts'

/** An event that was acknowledged. */
export interface KnownEvent {
  readonly id: string
  readonly key: string
}

const OCCURRENCES_MAX = 100_000

/**
 * Each occurrence of an automation up to where it was handled has exactly one run or one logged skip, and nothing else has
 * either. `mustReach`: time has to have been handled up to here.
 */
export async function checkOccurrences(
  automations: Automations,
  storage: Storage,
  record: AutomationRecord,
  mustReach: number,
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const say = (problem: string): void => {
    findings.push({ rule: 'one run or one skip', problem: `${record.definition.title}: ${problem}` })
  }
  const series = anyOf(timeTriggers(record.definition.triggers, automations.zones).map((trigger) => trigger.series))
  const { createdAt, handledUpTo } = record
  if (handledUpTo < mustReach) say(`handled up to ${handledUpTo} only, not to ${mustReach}`)
  const counted = new Map<number, string[]>()
  for (const { at } of occurrencesBetween(series, createdAt, handledUpTo, OCCURRENCES_MAX)) counted.set(at, [])
  const count = (at: number, what: string): void => {
    const found = counted.get(at)
    if (found === undefined) say(`${what} stands for ${at}, which is no occurrence`)
    else found.push(what)
  }
  for (const { value: job } of await storage.list('job', {
    name: runBlueprintName(record.id),
    limit: OCCURRENCES_MAX,
  })) {
    const scheduledFor = runViewOf(job)?.trigger.scheduledFor
    if (scheduledFor !== undefined) count(scheduledFor, `the run ${job.id}`)
  }
  const { items } = await automations.audit({ subject: record.id, action: 'run.skipped', limit: OCCURRENCES_MAX })
  for (const { id, details } of items) {
    const { first, last, scheduled_for: one, reason } = details
    if (typeof one === 'string') count(Date.parse(one), `the skip ${id} (${JSON.stringify(reason)})`)
    if (typeof first !== 'string' || typeof last !== 'string') continue
    for (const at of counted.keys()) {
      if (at >= Date.parse(first) && at <= Date.parse(last)) count(at, `the skip ${id} (${JSON.stringify(reason)})`)
    }
  }
  for (const [at, found] of counted) {
    if (found.length !== 1) say(`the occurrence ${at} has ${found.length} instead of one: ${found.join(', ')}`)
  }
  return findings
}

/** Events are there once: those that were acknowledged, and no others. */
export async function checkEvents(storage: Storage, events: readonly KnownEvent[]): Promise<readonly Finding[]> {
  const stored = await storage.list('event', { limit: OCCURRENCES_MAX })
  const known = new Set(events.map(({ id }) => id))
  return stored
    .filter(({ id }) => !known.has(id))
    .map(({ id }) => ({ rule: 'one event', problem: `${id} is there beside the event of its key` }))
}

/** Each of these events has started one run of each automation that listens. */
export async function checkHeard(
  storage: Storage,
  listeners: readonly string[],
  events: readonly KnownEvent[],
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const listener of listeners) {
    const heard = (await runsOf(storage, listener)).map((run) => run?.trigger.eventId)
    for (const { id } of events) {
      const runs = heard.filter((one) => one === id).length
      if (runs !== 1) findings.push({ rule: 'one run of an event', problem: `${listener} ran ${runs} times for ${id}` })
    }
  }
  return findings
}

/** An automation with a condition, and how often what is reported has gone up. */
export interface Watched {
  readonly id: string
  rises: number
}

/** A condition starts one run each time that it becomes true. */
export async function checkCrossings(storage: Storage, { id, rises }: Watched): Promise<readonly Finding[]> {
  const runs = (await runsOf(storage, id)).length
  return runs === rises ? [] : [{ rule: 'one run of a crossing', problem: `${id} ran ${runs} times for ${rises}` }]
}

/** What is counted against a budget is what has run, and that is no more than it allows. */
export async function checkBudget(
  automations: Automations,
  storage: Storage,
  record: AutomationRecord,
  limit: number,
): Promise<readonly Finding[]> {
  const runs = (await runsOf(storage, record.id)).length
  const counted = (await automations.budgets.state(record)).automation.runs.used
  const problem = `${runs} runs, ${String(counted)} of ${limit} are counted`
  return runs === counted && runs <= limit ? [] : [{ rule: 'within its budget', problem }]
}

/**
 * Every run that paid has paid once, whatever crashed; what the automation has used is the sum of it, and no more than it may
 * use. `price`: what one run reports.
 */
export async function checkUsage(
  automations: Automations,
  storage: Storage,
  record: AutomationRecord,
  { limit, price }: { readonly limit: number; readonly price: number },
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  let sum = 0
  for (const run of await runsOf(storage, record.id)) {
    const { usd } = await usageOfRun(storage, run?.id ?? '')
    sum += usd
    const isRight = run?.status === 'succeeded' ? usd === price : usd === 0 || usd === price
    const problem = `${run?.id} (${run?.status}) has used ${usd}`
    if (!isRight) findings.push({ rule: 'a report counts once', problem })
  }
  const { used } = (await automations.budgets.state(record)).automation.usd
  if (used !== sum || used > limit) {
    findings.push({ rule: 'within its budget', problem: `${used} of ${limit} are counted, and runs have used ${sum}` })
  }
  return findings
}

async function runsOf(storage: Storage, id: string): Promise<readonly ReturnType<typeof runViewOf>[]> {
  const jobs = await storage.list('job', { name: runBlueprintName(id), limit: OCCURRENCES_MAX })
  return jobs.map(({ value }) => runViewOf(value))
}

/** Runs end, and none stays behind in a gate. */
export async function checkRuns(storage: Storage): Promise<readonly Finding[]> {
  const jobs = await storage.list('job', { limit: OCCURRENCES_MAX })
  return jobs
    .filter(({ value }) => isOfAutomation(value) && !isEnded(value))
    .map(({ id, value }) => ({ rule: 'runs end', problem: `${id} is ${value.status}` }))
}
