import { isoInstant, parseDeliveryId, storedCopy, wallTime } from '@impresario/core'
import type { Clock, Job, Put, Storage } from '@impresario/core'
import { OneByOne } from '@impresario/engine'
import type { Engine, Metering, Receipt } from '@impresario/engine'
import { addUsage, DAY_MS, ImpresarioError, NO_USAGE } from '@impresario/protocol'
import type { JsonObject, Usage } from '@impresario/protocol'
import type { Budget } from '../automation/definition.ts'
import { putAudit, SYSTEM_ACTOR } from './audit.ts'
import { asAutomation, derivedId, isUuid } from './record.ts'
import type { AutomationRecord } from './record.ts'
import { automationOf } from './run-start.ts'

export interface BudgetsOptions {
  readonly storage: Storage
  readonly engine: Engine
  readonly clock: Clock
}

/** What was used on a day by UTC, and what may be. `limit` is absent where there is none. */
export interface BudgetState {
  readonly period: string
  /** Counted only where there is a limit. */
  readonly runs: { readonly used: number | undefined; readonly limit: number | undefined }
  readonly usd: { readonly used: number; readonly limit: number | undefined }
  readonly tokens: { readonly used: number; readonly limit: number | undefined }
  readonly seconds: { readonly used: number; readonly limit: number | undefined }
}

/** Whether a run may begin: what counts it, or why not. */
export type Admission = { readonly put: readonly Put[] } | { readonly spent: string }

type Account = { readonly kind: 'automation' | 'agent'; readonly id: string; readonly budget: Budget }

const CONFLICTS_MAX = 50
/** As long as the entries of runs in the audit log. */
const RUN_USAGE_MS = 90 * DAY_MS
/** Blueprints that start each other are bounded long before. */
const DEPTH_MAX = 100

/**
 * What automations and agents may use in a day, and what they have used.
 *
 * Runs are counted in the commit that starts them. Money, tokens and seconds are counted in the commit that takes the report
 * of a worker, together with the id of the report, so each counts once whatever crashes. A run that passes a limit is
 * stopped before its worker is answered: a worker that gets no answer sends its report again, and then the run is stopped.
 */
export class Budgets {
  readonly #options: BudgetsOptions
  /** Reports of one owner wait for each other here; only other instances conflict. */
  readonly #queue = new OneByOne()

  constructor(options: BudgetsOptions) {
    this.#options = options
  }

  /** `isCounted`: the run was counted before, when it began to wait. */
  async admit(record: AutomationRecord, isCounted: boolean): Promise<Admission> {
    const put: Put[] = []
    for (const account of await this.#accountsOf(record)) {
      const { budget } = account
      const spent = excess(budget, await this.#usageOf(account), account.kind, true)
      if (spent !== undefined) return { spent }
      if (isCounted || budget.runsPerDay === undefined) continue
      const { used, version } = await this.#runsOf(account)
      if (used >= budget.runsPerDay) return { spent: sentence(account.kind, 'runs_per_day', budget.runsPerDay, used) }
      const value = { period: this.#period(), used: used + 1 }
      put.push({ kind: 'quota', id: runsId(account), version: version + 1, value, expiresMs: 2 * DAY_MS })
    }
    return { put }
  }

  /** What a worker says that its task has used. It counts for the run that the task belongs to, with all its parts. */
  async meter(workerId: string, taskId: string, metering: Metering): Promise<Receipt> {
    const { engine, storage } = this.#options
    const ref = parseDeliveryId(taskId)
    const job = ref === undefined ? undefined : (await storage.read('job', ref.jobId))?.value
    const run = job === undefined ? undefined : await this.#rootOf(job)
    const automationId = run === undefined ? undefined : automationOf(run)
    if (run === undefined || automationId === undefined) {
      const receipt = await engine.desk.recordUsage(workerId, taskId, metering)
      if (receipt.type === 'lost') throw busy()
      return receipt
    }
    return this.#queue.run(run.client.id, () => this.#count(run, automationId, { workerId, taskId, metering }))
  }

  /** What was used today, for the automation and for the agent that owns it, if it has a budget. */
  async state(record: AutomationRecord): Promise<{ automation: BudgetState; agent: BudgetState | undefined }> {
    const [automation, agent] = await Promise.all(
      (await this.#accountsOf(record)).map((account) => this.#stateOf(account)),
    )
    if (automation === undefined) throw new Error('Every automation has an account.')
    return { automation, agent }
  }

  async #stateOf(account: Account): Promise<BudgetState> {
    const { budget } = account
    const usage = await this.#usageOf(account)
    const runs = budget.runsPerDay === undefined ? undefined : (await this.#runsOf(account)).used
    return {
      period: this.#period(),
      runs: { used: runs, limit: budget.runsPerDay },
      usd: { used: usage.usd, limit: budget.usdPerDay },
      tokens: { used: usage.tokens, limit: budget.tokensPerDay },
      seconds: { used: usage.seconds, limit: budget.gpuSecondsPerDay },
    }
  }

  async #count(run: Job, automationId: string, said: Said): Promise<Receipt> {
    const { engine, storage } = this.#options
    const stored = await storage.read('automation', automationId)
    const record = stored === undefined ? undefined : asAutomation(stored).value
    const accounts = record === undefined ? [] : await this.#accountsOf(record)
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts += 1) {
      const { usage } = said.metering
      const puts = await Promise.all([
        this.#counted(runUsageId(run.id), '', usage, RUN_USAGE_MS),
        ...accounts.map((account) => this.#counted(usageId(account), this.#period(), usage, 2 * DAY_MS)),
      ])
      const receipt = await engine.desk.recordUsage(said.workerId, said.taskId, said.metering, puts)
      if (receipt.type === 'lost') continue
      await this.#stopIfSpent(run, accounts)
      return receipt
    }
    // Either the lease is over, or others write without end. Both times the report may be sent again.
    throw busy()
  }

  async #stopIfSpent(run: Job, accounts: readonly Account[]): Promise<void> {
    const { engine, storage, clock } = this.#options
    for (const account of accounts) {
      const reason = excess(account.budget, await this.#usageOf(account), account.kind, false)
      if (reason === undefined) continue
      const subject = automationOf(run) ?? ''
      const id = derivedId(run.createdAt, `budget/${run.id}`, subject)
      const details = { run_id: run.id, reason: 'budget', message: reason }
      const entry = { id, at: wallTime(clock), actor: SYSTEM_ACTOR, action: 'run.stopped', subject }
      // Who comes second finds the entry, and that is as good.
      await storage.commit({ put: [putAudit({ ...entry, owner: run.client.id, details })] })
      await engine.cancelJob(run.id, SYSTEM_ACTOR, reason)
      return
    }
  }

  async #counted(id: string, period: string, usage: Usage, expiresMs: number): Promise<Put> {
    const stored = await this.#options.storage.read('quota', id)
    const before = stored?.value.period === period ? (stored.value.usage ?? NO_USAGE) : NO_USAGE
    const value = { period, used: 0, usage: addUsage(before, usage) }
    return { kind: 'quota', id, version: (stored?.version ?? 0) + 1, value, expiresMs }
  }

  async #usageOf(account: Account): Promise<Usage> {
    const stored = await this.#options.storage.read('quota', usageId(account))
    return stored?.value.period === this.#period() ? (stored.value.usage ?? NO_USAGE) : NO_USAGE
  }

  async #runsOf(account: Account): Promise<{ used: number; version: number }> {
    const stored = await this.#options.storage.read('quota', runsId(account))
    return {
      used: stored?.value.period === this.#period() ? stored.value.used : 0,
      version: stored?.version ?? 0,
    }
  }

  /** Agents have ids like ours; clients that are no agents have no budgets. */
  async #accountsOf({ id, owner, definition }: AutomationRecord): Promise<readonly Account[]> {
    const automation: Account = { kind: 'automation', id, budget: definition.budget }
    const agent = isUuid(owner) ? await this.#options.storage.read('agent', owner) : undefined
    const budget = agent === undefined ? undefined : budgetOfAgent(agent.value)
    return budget === undefined ? [automation] : [automation, { kind: 'agent', id: owner, budget }]
  }

  /** The job that nothing else started. */
  async #rootOf(job: Job): Promise<Job> {
    let root = job
    for (let depth = 0; depth < DEPTH_MAX && root.parent !== undefined; depth += 1) {
      const parent = (await this.#options.storage.read('job', root.parent.jobId))?.value
      if (parent === undefined) return root
      root = parent
    }
    return root
  }

  #period(): string {
    return isoInstant(wallTime(this.#options.clock)).slice(0, 10)
  }
}

interface Said {
  readonly workerId: string
  readonly taskId: string
  readonly metering: Metering
}

/** Boundary: an agent's record has its budget as `readBudget` made it. */
function budgetOfAgent(value: JsonObject): Budget | undefined {
  return (storedCopy(value) as unknown as { readonly budget?: Budget }).budget
}

function runsId({ kind, id }: Account): string {
  return `%${kind}/${id}`
}

function usageId({ kind, id }: Account): string {
  return `%usage/${kind}/${id}`
}

function runUsageId(runId: string): string {
  return `%usage/run/${runId}`
}

/** What a run has used, with all its parts. */
export async function usageOfRun(storage: Storage, runId: string): Promise<Usage> {
  return (await storage.read('quota', runUsageId(runId)))?.value.usage ?? NO_USAGE
}

/** Which limit is reached (before a run) or passed (during one). */
function excess(budget: Budget, usage: Usage, kind: Account['kind'], isBefore: boolean): string | undefined {
  const limits = [
    ['usd_per_day', budget.usdPerDay, usage.usd],
    ['tokens_per_day', budget.tokensPerDay, usage.tokens],
    ['gpu_seconds_per_day', budget.gpuSecondsPerDay, usage.seconds],
  ] as const
  for (const [name, limit, used] of limits) {
    if (limit !== undefined && (isBefore ? used >= limit : used > limit)) return sentence(kind, name, limit, used)
  }
  return undefined
}

function sentence(kind: Account['kind'], name: string, limit: number, used: number): string {
  return `The budget is spent: ${name} of the ${kind} is ${limit}, and ${used} were used today (UTC).`
}

function busy(): ImpresarioError {
  return new ImpresarioError('STORAGE_UNAVAILABLE', 'The usage could not be counted now. Send it again.')
}
