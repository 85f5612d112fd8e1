import { overrideStorage } from '@impresario/core'
import type { Batch, Put, Storage } from '@impresario/core'

/** A bug in how automations could use their storage, to test whether the checkers find it. */
interface AutomationBug {
  readonly says: string
  readonly plant: (storage: Storage) => Storage
}

type Commit = Storage['commit']

export const AUTOMATION_BUGS = {
  'settles-first': {
    says: 'takes a firing out of the queue before its run is written',
    plant: (storage) =>
      committing(storage, async (batch, commit) => {
        const { settle, ...rest } = batch
        if (settle?.queue !== 'firings') return commit(batch)
        const outcome = await commit({ settle })
        return outcome === 'conflict' ? outcome : commit(rest)
      }),
  },
  'settles-last': {
    says: 'writes the run first, and what has been handled in a second call',
    plant: (storage) =>
      committing(storage, async (batch, commit) => {
        const { put = [], settle, ...rest } = batch
        if (settle?.queue !== 'firings' || !put.some(isOf('job'))) return commit(batch)
        const outcome = await commit({
          ...rest,
          enqueue: turnsOf(batch),
          put: put.filter((one) => !isOf('automation')(one)),
        })
        const later = { settle, put: put.filter(isOf('automation')), enqueue: firingsOf(batch) }
        return outcome === 'conflict' ? outcome : commit(later)
      }),
  },
  'forgets-next': {
    says: 'puts the next firing into the queue in a call of its own',
    plant: (storage) =>
      committing(storage, async (batch, commit) => {
        const next = firingsOf(batch)
        if (batch.settle?.queue !== 'firings' || next.length === 0) return commit(batch)
        const outcome = await commit({ ...batch, enqueue: turnsOf(batch) })
        return outcome === 'conflict' ? outcome : commit({ enqueue: next })
      }),
  },
  'skips-in-silence': {
    says: 'does not log what was skipped',
    plant: (storage) =>
      committing(storage, (batch, commit) =>
        commit({ ...batch, put: (batch.put ?? []).filter((one) => one.facets?.status !== 'run.skipped') }),
      ),
  },
  'not-fenced': {
    says: 'writes under whatever version is there, and does not look whether its claim was lost',
    plant: (storage) =>
      committing(storage, async (batch, commit) => {
        const { put = [], settle, ...rest } = batch
        if (settle?.queue !== 'firings') return commit(batch)
        const current = await Promise.all(
          put.map(async (one): Promise<Put> => {
            if (one.kind !== 'automation' && one.kind !== 'gate') return one
            const version = ((await storage.read(one.kind, one.id))?.version ?? 0) + 1
            return { ...one, version }
          }),
        )
        return commit({ ...rest, put: current, remove: [...(rest.remove ?? []), { queue: 'firings', id: settle.id }] })
      }),
  },
  'event-heard-first': {
    says: 'takes an event out of the queue before the automations have heard it',
    plant: (storage) =>
      overrideStorage(storage, {
        claim: async (queue, options) => {
          const claimed = await storage.claim(queue, options)
          if (queue === 'events') for (const lease of claimed.leases) await storage.commit({ settle: lease })
          return claimed
        },
      }),
  },
  'key-apart': {
    says: 'writes the key of an event after the event, in a call of its own',
    plant: (storage) =>
      committing(storage, async (batch, commit) => {
        const { put = [] } = batch
        if (!put.some(isOf('event')) || !put.some(isOf('key'))) return commit(batch)
        const outcome = await commit({ ...batch, put: put.filter((one) => !isOf('key')(one)) })
        return outcome === 'conflict' ? outcome : commit({ put: put.filter(isOf('key')) })
      }),
  },
  'crossing-first': {
    says: 'writes that a condition has fired, and its run in a second call',
    plant: (storage) =>
      committing(storage, async (batch, commit) => {
        const { put = [], ...rest } = batch
        if (!put.some(isOf('condition')) || !put.some(isOf('job'))) return commit(batch)
        const outcome = await commit({ put: put.filter(isOf('condition')) })
        return outcome === 'conflict' ? outcome : commit({ ...rest, put: put.filter((one) => !isOf('condition')(one)) })
      }),
  },
  'crossing-last': {
    says: 'starts the run of a condition, and writes in a second call that it has fired',
    plant: (storage) =>
      committing(storage, async (batch, commit) => {
        const { put = [], ...rest } = batch
        if (!put.some(isOf('condition')) || !put.some(isOf('job'))) return commit(batch)
        const outcome = await commit({ ...rest, put: put.filter((one) => !isOf('condition')(one)) })
        return outcome === 'conflict' ? outcome : commit({ put: put.filter(isOf('condition')) })
      }),
  },
  'hold-first': {
    says: 'takes the moment at which a condition has held long enough out of the queue before its run is written',
    plant: (storage) =>
      committing(storage, async (batch, commit) => {
        const { settle, ...rest } = batch
        if (settle?.queue !== 'firings' || !(batch.put ?? []).some(isOf('condition'))) return commit(batch)
        const outcome = await commit({ settle })
        return outcome === 'conflict' ? outcome : commit(rest)
      }),
  },
  'delivery-unknown': {
    says: 'does not keep the ids of deliveries, so that a sender who sends again starts another run',
    plant: (storage) =>
      committing(storage, (batch, commit) => {
        const { put = [] } = batch
        const isHooked = put.some((one) => one.kind === 'event' && 'source' in one.value)
        return commit(isHooked ? { ...batch, put: put.filter((one) => !isOf('key')(one)) } : batch)
      }),
  },
  'budget-later': {
    says: 'counts a run against its budget in a call of its own, after the run',
    plant: (storage) =>
      committing(storage, async (batch, commit) => {
        const { put = [], ...rest } = batch
        if (!put.some(isOf('quota')) || !put.some(isOf('job'))) return commit(batch)
        const outcome = await commit({ ...rest, put: put.filter((one) => !isOf('quota')(one)) })
        return outcome === 'conflict' ? outcome : commit({ put: put.filter(isOf('quota')) })
      }),
  },
  'usage-later': {
    says: 'notes that a report was taken, and counts what it says in a second call',
    plant: (storage) =>
      committing(storage, async (batch, commit) => {
        const { put = [], ...rest } = batch
        const counts = put.filter(isUsage)
        if (counts.length === 0) return commit(batch)
        const outcome = await commit({ ...rest, put: put.filter((one) => !isUsage(one)) })
        return outcome === 'conflict' ? outcome : commit({ put: counts })
      }),
  },
  'report-forgotten': {
    says: 'counts a report without noting that it was taken, so that one that is sent again counts again',
    plant: (storage) =>
      committing(storage, (batch, commit) => {
        const { put = [] } = batch
        return commit(put.some(isUsage) ? { ...batch, put: put.filter(isUsage) } : batch)
      }),
  },
  'probe-first': {
    says: 'takes the next look of a condition out of the queue before what follows from this one is written',
    plant: (storage) =>
      committing(storage, async (batch, commit) => {
        const { settle, ...rest } = batch
        if (settle?.queue !== 'firings' || !settle.id.endsWith('.probe')) return commit(batch)
        const outcome = await commit({ settle })
        return outcome === 'conflict' ? outcome : commit(rest)
      }),
  },
} satisfies Record<string, AutomationBug>

export type AutomationBugName = keyof typeof AUTOMATION_BUGS

function committing(storage: Storage, change: (batch: Batch, commit: Commit) => ReturnType<Commit>): Storage {
  return overrideStorage(storage, { commit: (batch) => change(batch, (one) => storage.commit(one)) })
}

function isOf(kind: Put['kind']): (put: Put) => boolean {
  return (put) => put.kind === kind
}

/** What was used, as it is counted. */
function isUsage({ kind, id }: Put): boolean {
  return kind === 'quota' && id.startsWith('%usage/')
}

function firingsOf({ enqueue = [] }: Batch): NonNullable<Batch['enqueue']> {
  return enqueue.filter(({ queue }) => queue === 'firings')
}

function turnsOf({ enqueue = [] }: Batch): NonNullable<Batch['enqueue']> {
  return enqueue.filter(({ queue }) => queue !== 'firings')
}
