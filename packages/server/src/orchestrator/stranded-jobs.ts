import { setImmediate as nextTick } from 'node:timers/promises'
import { isOfAutomation } from '@impresario/automations'
import { nextPage } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { ENDED_STATUSES, JOB_STATUSES, LIMITS } from '@impresario/protocol'
import type { ReloadableRegistry } from './reloadable-registry.ts'

export interface StrandedJobs {
  readonly jobs: number
  /** Such as `publish_video v1`, those with the most jobs first. */
  readonly versions: readonly string[]
  /** False when there are more open jobs than were looked at. */
  readonly isWhole: boolean
}

const OPEN = JOB_STATUSES.filter((status) => !ENDED_STATUSES.includes(status) && status !== 'quarantined')
/** A development server has fewer; one that has more gets its answer for these. */
const LOOKED_MAX = 10_000

/** Open jobs that run under a version of their blueprint that is not loaded. Their next turn migrates or quarantines them. */
export async function strandedJobs(
  engine: Pick<Engine, 'listJobs'>,
  blueprints: Pick<ReloadableRegistry, 'get'>,
): Promise<StrandedJobs> {
  const found = new Map<string, number>()
  let before: string | undefined
  let looked = 0
  do {
    const query = { statuses: OPEN, limit: LIMITS.pageSizeMax, bytesMax: LIMITS.pagePieceBytes }
    const page = await engine.listJobs(before === undefined ? query : { ...query, before })
    for (const { value: job } of page) {
      if (isOfAutomation(job) || blueprints.get(job.blueprint, job.blueprintVersion) !== undefined) continue
      const version = `${job.blueprint} v${job.blueprintVersion}`
      found.set(version, (found.get(version) ?? 0) + 1)
    }
    looked += page.length
    before = nextPage(page, query.limit)
    await nextTick()
  } while (before !== undefined && looked < LOOKED_MAX)
  const versions = [...found].toSorted(([, a], [, b]) => b - a)
  return {
    jobs: versions.reduce((sum, [, count]) => sum + count, 0),
    versions: versions.map(([version]) => version),
    isWhole: before === undefined,
  }
}
