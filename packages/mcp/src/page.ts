import type { JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import type { ApiReply, ApiRequest } from './api.ts'
import { BOUNDS } from './bounds.ts'
import { fitted, pick, rowsOf, withTimes } from './tool.ts'
import type { ToolAnswer, ToolContext } from './tool.ts'

/** The arguments of every list. */
export const pageInput = {
  limit: z.int().min(1).max(BOUNDS.rowsMax).optional().describe(`Rows, at most ${BOUNDS.rowsMax}.`),
  cursor: z.string().min(1).max(1_000).optional().describe('next_cursor of the page before.'),
}

/** What every list answers. */
export function pageOutput(rows: string): z.ZodObject {
  return z.object({ [rows]: z.array(z.looseObject({})), next_cursor: z.string().nullable() })
}

interface PageArguments {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

export interface Listing {
  readonly rows: string
  readonly request: ApiRequest
  readonly fields: readonly string[]
}

/** One page of a list, in the order of the API. */
export async function page(
  { api, signal }: ToolContext,
  { limit = BOUNDS.rowsMax, cursor }: PageArguments,
  { rows, request, fields }: Listing,
): Promise<ToolAnswer> {
  const reply = await api.call({ ...request, query: { ...request.query, limit, cursor }, signal })
  return { data: pageData(rows, reply, fields) }
}

function pageData(rows: string, { body, nextCursor }: ApiReply, fields: readonly string[]): JsonObject {
  const rowBytesMax = Math.floor(BOUNDS.answerBytesMax / BOUNDS.rowsMax)
  const found = rowsOf(body).slice(0, BOUNDS.rowsMax)
  return {
    [rows]: found.map((row) => fitted(withTimes(pick(row, fields)), rowBytesMax)),
    next_cursor: nextCursor ?? null,
  }
}
