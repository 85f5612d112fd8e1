import type { BugKind } from './bug.ts'

/**
 * Bugs where messages of workers arrive. A message counts as a whole or not at all: who sent it sends all of it again when no
 * answer came.
 */
export const MESSAGE_BUGS = {
  'cut-message': {
    says: 'takes what has arrived of a message that was cut in the middle, and acknowledges all of it',
    setup: 'both',
    plant: () => ({
      results: (take) => async (reports) => {
        const receipts = await take(reports.slice(0, Math.ceil(reports.length / 2)))
        const last = receipts.at(-1)
        return reports.flatMap((_, index) => receipts[index] ?? last ?? [])
      },
    }),
  },
} satisfies Record<string, BugKind>
