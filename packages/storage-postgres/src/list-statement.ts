import { isIndexedByName } from '@impresario/core'
import type { Kind, ListQuery } from '@impresario/core'
import { searchable } from './batch-message.ts'

interface Statement {
  readonly text: string
  readonly values: readonly unknown[]
}

/** The index that a list walks. */
export type Way = 'id' | 'owner' | 'status' | 'name'

/** Where several indexes lead to the records, one look so far shows which of them leads further back. */
const PROBE_LOOKS = 2_000

/** The statuses that are asked for; `undefined` for all. */
export function statusesOf({ status, statuses }: ListQuery): readonly string[] | undefined {
  if (status === undefined) return statuses === undefined ? undefined : [...new Set(statuses)]
  return statuses === undefined || statuses.includes(status) ? [status] : []
}

/** Indexes that lead to all that is asked for. */
export function waysOf(kind: Kind, query: ListQuery): readonly Way[] {
  if (query.name !== undefined && isIndexedByName(kind)) return ['name']
  const statuses = statusesOf(query)
  const ways: Way[] = []
  if (statuses !== undefined && !statuses.includes('finished')) ways.push('status')
  if (query.owner !== undefined) ways.push('owner')
  return ways.length === 0 ? ['id'] : ways
}

/** Whether this index also leads to records that another filter leaves out; those of one name are few. */
export function isScan(way: Way, query: ListQuery): boolean {
  const { owner, name, search = '' } = query
  if (way === 'name') return false
  if (search !== '') return true
  return (
    name !== undefined ||
    (way !== 'owner' && owner !== undefined) ||
    (way !== 'status' && statusesOf(query) !== undefined)
  )
}

/** How far back each of these ways comes within the looks of the query, as columns `w0`, `w1`. `schema` is quoted. */
export function floorStatement(schema: string, kind: Kind, query: ListQuery, ways: readonly Way[]): Statement {
  const { owner = null, before = null, from = null } = query
  const floors = ways.map((way, index) => `${schema}.list_floor($1, '${way}', $2, $3::text[], $4, $5, $6) AS w${index}`)
  return {
    text: `SELECT ${floors.join(', ')}`,
    values: [kind, owner, statusesOf(query) ?? null, before, from, looksOf(query)],
  }
}

/**
 * The statement for a list that walks this index. `schema` is quoted. Where `isBounded`, it first finds where its looks end, and
 * each row has that `floor`; if nothing fits, there is one row with nothing else in it.
 */
export function listStatement(schema: string, kind: Kind, query: ListQuery, way: Way, isBounded = false): Statement {
  const { text, values } = way === 'name' ? byName(schema, kind, query) : inOrder(schema, kind, query, way, isBounded)
  if (query.bytesMax === undefined) return { text, values }
  // The length of a text is known without reading it, so that only the text that is sent is fetched from its storage
  // (TOAST).
  const weighed = `SELECT p.*, octet_length(p.data) AS bytes, count(*) OVER () AS total,
    sum(octet_length(p.data)) OVER (ORDER BY p.id COLLATE "C" DESC) AS sum FROM (${text}) p`
  return {
    text: `SELECT ${isBounded ? 'floor, ' : ''}id, version, data, total::integer AS total FROM (${weighed}) w
      WHERE ${isBounded ? 'id IS NULL OR ' : ''}sum - bytes < $${values.length + 1} ORDER BY id COLLATE "C" DESC`,
    values: [...values, query.bytesMax],
  }
}

function inOrder(schema: string, kind: Kind, query: ListQuery, way: Way, isBounded: boolean): Statement {
  const { owner = null, name = null, before = null, from = null, search = '', limit } = query
  const needle = search === '' ? null : searchable(search)
  const values = [kind, owner, statusesOf(query) ?? null, name, before, from, needle, limit]
  const page = (start: string): string => `${schema}.list_page($1, '${way}', $2, $3::text[], $4, $5, ${start}, $7, $8)`
  if (!isBounded) return { text: `SELECT id, version, data FROM ${page('$6')}`, values }
  const floor = `SELECT ${schema}.list_floor($1, '${way}', $2, $3::text[], $5, $6, $9) AS floor`
  return {
    text: `SELECT f.floor, p.id, p.version, p.data FROM (${floor}) f LEFT JOIN LATERAL ${page('coalesce(f.floor, $6)')} p ON true`,
    values: [...values, looksOf(query)],
  }
}

function looksOf({ looksMax = PROBE_LOOKS }: ListQuery): number {
  return Math.max(1, Math.floor(looksMax))
}

/** Of a kind that has an index of names. */
function byName(schema: string, kind: Kind, query: ListQuery): Statement {
  const values: unknown[] = [kind, query.limit]
  const add = (value: unknown): string => `$${values.push(value)}`
  const where = [
    'r.kind = $1',
    `(r.expires_at IS NULL OR r.expires_at > (SELECT ${schema}.now_ms()))`,
    // A plan that is kept knows no values: the literal tells it that the index by name holds all that is asked for.
    `r.kind = '${kind}'`,
    `r.name = ${add(query.name)}`,
  ]
  // What is computed is not looked up in the index by owner, which may be longer.
  if (query.owner !== undefined) where.push(`r.owner || '' = ${add(query.owner)}`)
  if (query.before !== undefined) where.push(`r.id < ${add(query.before)}`)
  if (query.from !== undefined) where.push(`r.id >= ${add(query.from)}`)
  if (query.search !== undefined && query.search !== '') {
    where.push(`position(${add(searchable(query.search))} IN r.text) > 0`)
  }
  const statuses = statusesOf(query)
  if (statuses !== undefined) where.push(`r.status = ANY (${add(statuses)}::text[])`)
  const text = `SELECT r.id, r.version, r.data FROM ${schema}.records r WHERE ${where.join(' AND ')} ORDER BY r.id DESC LIMIT $2`
  return { text, values }
}
