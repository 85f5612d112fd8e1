import type { Changes, Journal } from '@impresario/storage-embedded'
import type { BugKind } from './bug.ts'

/** Bugs that the write-behind could have. */
export const DISK_BUGS = {
  'journal-reorders': {
    says: 'lets a later write overtake an earlier one that was called durable',
    setup: 'embedded',
    plant: () => ({
      journal: (journal) => {
        let held: Changes | undefined
        let count = 0
        return {
          ...forwarding(journal),
          write: async (changes) => {
            count += 1
            if (held === undefined && count % 4 === 0) {
              held = changes
              return false
            }
            const hasRemains = await journal.write(changes)
            if (held !== undefined) await journal.write(held)
            held = undefined
            return hasRemains
          },
        }
      },
    }),
  },
  'journal-tears': {
    says: 'writes records and items apart, so that a crash can come between',
    setup: 'embedded',
    plant: () => ({
      journal: (journal) => ({
        ...forwarding(journal),
        write: async (changes) => {
          await journal.write({ ...changes, items: [], leases: [], removed: [] })
          return journal.write({ ...changes, records: [] })
        },
      }),
    }),
  },
  'sync-lies': {
    says: 'calls a write durable when it has only begun',
    setup: 'embedded',
    plant: () => ({
      journal: (journal) => {
        let last: Promise<unknown> = Promise.resolve()
        return {
          ...forwarding(journal),
          write: async (changes) => {
            last = last.then(() => journal.write(changes)).catch(() => undefined)
            return false
          },
        }
      },
    }),
  },
} satisfies Record<string, BugKind>

function forwarding(journal: Journal): Journal {
  return {
    open: () => journal.open(),
    write: (changes) => journal.write(changes),
    read: (kind, id) => journal.read(kind, id),
    readFrom: (kind, id, limit, charsMax) => journal.readFrom(kind, id, limit, charsMax),
    list: (kind, query) => journal.list(kind, query),
    floor: (kind, query, looksMax) => journal.floor(kind, query, looksMax),
    expiring: (after, until) => journal.expiring(after, until),
    itemsFrom: (queue, id, limit) => journal.itemsFrom(queue, id, limit),
    item: (queue, id) => journal.item(queue, id),
    itemsDue: (queue, after, until) => journal.itemsDue(queue, after, until),
    payload: (queue, id) => journal.payload(queue, id),
    lastId: (kind) => journal.lastId(kind),
    close: () => journal.close(),
  }
}
