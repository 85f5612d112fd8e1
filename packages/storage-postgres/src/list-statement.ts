import { isIndexedByName } from '@impresario/core'
import type { Kind, ListQuery } from '@impresario/core'
import { searchable } from './batch-message.ts'

interface Statement {
  readonly text: string
  readonly values: readonly unknown[]
}

/** The statement for a list. `schema` is quoted. */
export function listStatement(schema: string, kind: Kind, query: ListQuery): Statement {
  const { text, values } = pageStatement(schema, kind, query)
  if (query.bytesMax === undefined) return { text, values }
  // The length of a text is known without reading it, so that only the text that is sent is fetched from its storage
  // (TOAST).
  const weighed = `SELECT p.*, octet_length(p.data) AS bytes, count(*) OVER () AS total,
    sum(octet_length(p.data)) OVER (ORDER BY p.id COLLATE "C" DESC) AS sum FROM (${text}) p`
  return {
    text: `SELECT id, version, data, total::integer AS total FROM (${weighed}) w
      WHERE sum - bytes < $${values.length + 1} ORDER BY id COLLATE "C" DESC`,
    values: [...values, query.bytesMax],
  }
}

/**
 * Where a page ends that may look through so many records: the id of the last of them. No statement where an index leads to
 * all that is asked for.
 */
export function floorStatement(schema: string, kind: Kind, query: ListQuery): Statement | undefined {
  const { looksMax, search, name, ...indexed } = query
  const isScan = (search !== undefined && search !== '') || name !== undefined
  if (looksMax === undefined || !isScan) return undefined
  const { text, values } = pageStatement(schema, kind, { ...indexed, limit: looksMax })
  return {
    text: `SELECT id FROM (${text}) p ORDER BY id COLLATE "C" DESC OFFSET ${Math.floor(looksMax) - 1} LIMIT 1`,
    values,
  }
}

function pageStatement(schema: string, kind: Kind, query: ListQuery): Statement {
  const values: unknown[] = [kind, query.limit]
  const add = (value: unknown): string => `$${values.push(value)}`
  const where = ['r.kind = $1', `(r.expires_at IS NULL OR r.expires_at > (SELECT ${schema}.now_ms()))`]
  const isByName = query.name !== undefined && isIndexedByName(kind)
  // A plan that is kept knows no values: the literal tells it that the index by name holds all that is asked for.
  if (isByName) where.push(`r.kind = '${kind}'`)
  // What is computed is not looked up in the index by owner, which may be longer.
  if (query.owner !== undefined) where.push(`${isByName ? "r.owner || ''" : 'r.owner'} = ${add(query.owner)}`)
  if (query.name !== undefined) where.push(`r.name = ${add(query.name)}`)
  if (query.before !== undefined) where.push(`r.id < ${add(query.before)}`)
  if (query.from !== undefined) where.push(`r.id >= ${add(query.from)}`)
  if (query.search !== undefined && query.search !== '') {
    where.push(`position(${add(searchable(query.search))} IN r.text) > 0`)
  }
  if (query.status !== undefined) where.push(`r.status = ${add(query.status)}`)
  const page = (conditions: readonly string[]): string =>
    `SELECT r.id, r.version, r.data FROM ${schema}.records r WHERE ${conditions.join(' AND ')} ORDER BY r.id DESC LIMIT $2`
  if (query.statuses === undefined) return { text: page(where), values }
  if (query.owner !== undefined) {
    where.push(`r.status = ANY (${add(query.statuses)}::text[])`)
    return { text: page(where), values }
  }
  // One page per status from its own index, then the best of all: a rare status is found quickly among millions of
  // others.
  const each = page([...where, 'r.status = s.status'])
  const statuses = add([...new Set(query.statuses)])
  const text = `SELECT p.* FROM unnest(${statuses}::text[]) AS s(status) CROSS JOIN LATERAL (${each}) p
    ORDER BY p.id COLLATE "C" DESC LIMIT $2`
  return { text, values }
}
