import { setImmediate as nextTick } from 'node:timers/promises'
import { isOfAutomation } from '@impresario/automations'
import { nextPage } from '@impresario/core'
import type { Job, Log } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { ENDED_STATUSES, JOB_STATUSES, LIMITS } from '@impresario/protocol'
import type { ReloadableRegistry } from './reloadable-registry.ts'

export interface StrandedParts {
  readonly engine: Pick<Engine, 'listJobs'>
  readonly blueprints: Pick<ReloadableRegistry, 'get'>
  readonly log: Log
}

/** How many jobs, and what they lack, such as `publish_video v1` or `publish_video: review`; the most frequent first. */
interface Lack {
  readonly jobs: number
  readonly names: readonly string[]
}

interface StrandedJobs {
  /** They run under a version that is not loaded. Their next turn migrates or quarantines them. */
  readonly versions: Lack
  /** They are in a state, or wait to enter one, that their version no longer has. */
  readonly states: Lack
  /** False when there are more open jobs than were looked at. */
  readonly isWhole: boolean
}

const OPEN = JOB_STATUSES.filter((status) => !ENDED_STATUSES.includes(status) && status !== 'quarantined')
/** A development server has fewer; one that has more gets its answer for these. */
const LOOKED_MAX = 10_000
const NAMES_SHOWN_MAX = 20

/** Warns of open jobs that the loaded blueprints do not fit. Never rejects: it is advice. */
export async function tellStranded(parts: StrandedParts, signal: AbortSignal): Promise<void> {
  const { log } = parts
  try {
    const { versions, states, isWhole } = await strandedJobs(parts, signal)
    if (signal.aborted) return
    const count = ({ jobs }: Lack): string => `${isWhole ? '' : 'at least '}${jobs} open ${jobs === 1 ? 'job' : 'jobs'}`
    const shown = ({ names }: Lack): string => names.slice(0, NAMES_SHOWN_MAX).join(', ')
    if (versions.jobs > 0) {
      log.warn(`${count(versions)} ${versions.jobs === 1 ? 'runs' : 'run'} under blueprint versions that are gone`, {
        versions: shown(versions),
        advice:
          'load these versions again, or give the newest one a migrate function; else their next turn quarantines them',
      })
    }
    if (states.jobs > 0) {
      log.warn(`${count(states)} ${states.jobs === 1 ? 'needs' : 'need'} states that the blueprints no longer have`, {
        states: shown(states),
        advice:
          'put the states back, or raise the version of the blueprint and give it a migrate function; else a job that reaches such a state is quarantined',
      })
    }
  } catch (error) {
    log.debug('open jobs could not be counted', { error: String(error) })
  }
}

async function strandedJobs({ engine, blueprints }: StrandedParts, signal: AbortSignal): Promise<StrandedJobs> {
  const versions = new Tally()
  const states = new Tally()
  let before: string | undefined
  let looked = 0
  do {
    const query = { statuses: OPEN, limit: LIMITS.pageSizeMax, bytesMax: LIMITS.pagePieceBytes }
    const page = await engine.listJobs(before === undefined ? query : { ...query, before })
    for (const { value: job } of page) {
      if (isOfAutomation(job)) continue
      const blueprint = blueprints.get(job.blueprint, job.blueprintVersion)
      if (blueprint === undefined) versions.add([`${job.blueprint} v${job.blueprintVersion}`])
      else states.add(statesAhead(job).flatMap((name) => (blueprint.state(name) ? [] : [`${job.blueprint}: ${name}`])))
    }
    looked += page.length
    before = nextPage(page, query.limit)
    await nextTick()
  } while (before !== undefined && looked < LOOKED_MAX && !signal.aborted)
  return { versions: versions.lack(), states: states.lack(), isWhole: before === undefined }
}

/** Where the job is to run next, or may: what it waits for has its ways in the record. */
function statesAhead({ wait, state }: Job): readonly string[] {
  switch (wait?.kind) {
    case undefined:
      return [state]
    case 'sleep':
      return [wait.to]
    case 'parallel':
      return [wait.into]
    case 'task':
      return distinct([...Object.values(wait.transitions), ...Object.values(wait.eventTransitions ?? {})])
    case 'child':
    case 'human':
    case 'event':
      return distinct(Object.values(wait.transitions))
  }
}

function distinct(names: readonly string[]): readonly string[] {
  return [...new Set(names)]
}

/** Counts jobs, and how often each name is lacking. */
class Tally {
  readonly #names = new Map<string, number>()
  #jobs = 0

  add(names: readonly string[]): void {
    if (names.length > 0) this.#jobs += 1
    for (const name of names) this.#names.set(name, (this.#names.get(name) ?? 0) + 1)
  }

  lack(): Lack {
    const names = [...this.#names].toSorted(([, a], [, b]) => b - a)
    return { jobs: this.#jobs, names: names.map(([name]) => name) }
  }
}
