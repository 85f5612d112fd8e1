import type { ListQuery } from '@impresario/core'
import { ImpresarioError, JOB_STATUSES, LIMITS } from '@impresario/protocol'
import type * as schemas from '@impresario/protocol/schemas'
import type { Caller } from '../http/access.ts'
import { ownerFilter } from './job-access.ts'
import { decodeCursor } from '../http/page.ts'

type JobListQuery = ReturnType<typeof schemas.jobListQuery.parse>

export interface JobListing {
  readonly query: ListQuery
  readonly offset: number
  /** Only where the oldest come first: the page begins behind this id. */
  readonly oldestAfter?: string | undefined
  readonly isOldestFirst: boolean
}

/** What the storage is asked for one page of jobs. */
export function jobListing(caller: Caller, given: JobListQuery): JobListing {
  const { status, blueprint, q, cursor, limit = LIMITS.pageSizeDefault, offset = 0 } = given
  if (cursor !== undefined && offset > 0) {
    throw new ImpresarioError('INVALID_REQUEST', '"cursor" and "offset" cannot go together. Use "cursor".')
  }
  const isOldestFirst = given.order === 'oldest'
  if (isOldestFirst && (q !== undefined || offset > 0)) {
    const other = q === undefined ? 'offset' : 'q'
    throw new ImpresarioError('INVALID_REQUEST', `"order=oldest" and "${other}" cannot go together.`)
  }
  const ends = [
    ...(cursor === undefined || isOldestFirst ? [] : [decodeCursor(cursor)]),
    ...(given.created_before === undefined ? [] : [firstIdAt('created_before', given.created_before)]),
  ].toSorted()
  const [before] = ends
  const query: ListQuery = {
    ...ownerFilter(caller, given.owner),
    limit,
    ...(status === undefined ? {} : { statuses: statusesOf(status) }),
    ...(blueprint === undefined ? {} : { name: blueprint }),
    ...(q === undefined ? {} : { search: q }),
    ...(before === undefined ? {} : { before }),
    ...(given.created_after === undefined ? {} : { from: firstIdAt('created_after', given.created_after) }),
  }
  const oldestAfter = isOldestFirst && cursor !== undefined ? decodeCursor(cursor) : undefined
  return { query, offset, isOldestFirst, oldestAfter }
}

const KNOWN: ReadonlySet<string> = new Set(JOB_STATUSES)

function statusesOf(text: string): readonly string[] {
  const statuses = text.split(',').filter((one) => one !== '')
  const unknown = statuses.find((one) => !KNOWN.has(one))
  if (unknown === undefined && statuses.length > 0) return statuses
  throw new ImpresarioError(
    'INVALID_REQUEST',
    `${JSON.stringify(unknown ?? text)} is not a status. Statuses: ${JOB_STATUSES.join(', ')}.`,
  )
}

const ISO = /^\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:?\d{2}))?$/
/** The time in an id has 48 bits. */
export const MS_MAX = 2 ** 48 - 1

/**
 * Ids begin with their time in milliseconds, so the jobs of a span of time are the ids between two of these. The first
 * twelve digits sort before every id of their millisecond.
 */
function firstIdAt(name: string, text: string): string {
  return idAt(momentOf(name, text))
}

export function idAt(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}

/** When a job was created, in Unix seconds, by its id or by the beginning of one. */
export function timeIn(id: string): number | undefined {
  const { high, low } = /^(?<high>[\da-f]{8})-(?<low>[\da-f]{4})(?:-7|$)/.exec(id)?.groups ?? {}
  return high === undefined ? undefined : Number.parseInt(`${high}${low}`, 16) / 1_000
}

/** A moment that a query names, in milliseconds since 1970. */
export function momentOf(name: string, text: string): number {
  const ms = timeOf(text)
  if (ms !== undefined && Number.isFinite(ms) && ms >= 0 && ms <= MS_MAX) return Math.ceil(ms)
  throw new ImpresarioError(
    'INVALID_REQUEST',
    `"${name}" must be a time such as 2026-01-31T12:00:00Z, with its offset, or Unix seconds.`,
  )
}

function timeOf(text: string): number | undefined {
  if (/^\d{1,15}(?:\.\d{1,9})?$/.test(text)) return Number(text) * 1_000
  // A "+" that was not escaped in the query has become a blank.
  const iso = text.replace(/ (?=\d{2}:?\d{2}$)/, text.includes('T') ? '+' : ' ')
  return ISO.test(iso) ? Date.parse(iso) : undefined
}
