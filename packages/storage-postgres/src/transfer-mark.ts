import { markOf, mustNotBeTransferred } from '@impresario/core'
import type { Connections } from './connections.ts'

/** Stored beside the version of the tables. Orchestrators check it when they open the storage. */
export const TRANSFER = `
CREATE TABLE {schema}.moves (one boolean PRIMARY KEY DEFAULT true CHECK (one), mark text NOT NULL);
`

/**
 * Refuses a schema that a transfer has emptied or not yet filled. Checked after the session has begun, so that the
 * transfer sees the session too.
 */
export async function mustBeHere(connections: Connections, schema: string, sessionId: number): Promise<void> {
  const sql = `SELECT mark FROM ${schema}.moves`
  const [row] = await connections.call<{ readonly mark: string }>(sql, [], { isRepeatable: true })
  try {
    mustNotBeTransferred(markOf(row?.mark))
  } catch (error) {
    await connections.call(`SELECT ${schema}.end_session($1)`, [sessionId], { isRepeatable: true })
    throw error
  }
}
