import { contract } from '@impresario/protocol'
import { z } from 'zod'

/** A file of a client: each has an index of its own. */
const file = z.object({ owner: z.string(), path: z.string() })
const nothing = z.object({})
/** Which process has read the file, and keeps what it read. */
const read = z.object({ by: z.string().optional() })

/** What workers of the documents app can do. */
export const documentTasks = contract('documents', {
  /** Reads a file. What it read waits in memory for the task of the same job that indexes it. */
  parse: {
    input: file,
    output: read,
    outcomes: {
      /** The document is in the index already, with other content or under another path. */
      known: read,
      /** The content is what the index has. */
      unchanged: nothing,
      gone: nothing,
    },
  },
  /** Makes a new document searchable. */
  index: { input: file, output: nothing, outcomes: { lost: nothing } },
  /** Replaces what is found of a document, under the same identity. */
  update: { input: file, output: nothing, outcomes: { lost: nothing } },
  delete: { input: file, output: nothing },
})
