import type {
  EventCountQuery,
  EventFilter,
  EventListQuery,
  JobHistoryQuery,
  PageBounds,
  WorkerHistoryQuery,
} from './history.ts'
import type { Span } from './spans.ts'

/** The syntax that differs between the two databases. */
export interface Dialect {
  /** The prefix of a parameter number. */
  readonly mark: '?' | '$'
  /** A timestamp, from a value in Unix seconds. */
  time(value: string): string
  /** The columns of an event, in the form that `eventOf` reads. */
  readonly columns: string
  /** With the alias `h`. */
  readonly table: string
  /** The approximate size of an event in bytes. */
  readonly weight: string
}

export interface Query {
  readonly sql: string
  readonly values: readonly (string | number)[]
}

/** Conditions and their parameters. */
export class Conditions {
  readonly values: (string | number)[] = []
  readonly #dialect: Dialect
  readonly #parts: string[] = []

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  get where(): string {
    return this.#parts.length === 0 ? '' : ` WHERE ${this.#parts.join(' AND ')}`
  }

  value(value: string | number): string {
    this.values.push(value)
    return `${this.#dialect.mark}${this.values.length}`
  }

  moment(ms: number): string {
    return this.#dialect.time(this.value(ms / 1_000))
  }

  also(part: string): this {
    this.#parts.push(part)
    return this
  }

  filter({ events, owner, blueprint, jobId, workerId }: EventFilter): this {
    const equal = { client: owner, blueprint, job_id: jobId, worker_id: workerId }
    for (const [column, value] of Object.entries(equal)) {
      if (value !== undefined) this.also(`${column} = ${this.value(value)}`)
    }
    if (events === undefined) return this
    if (events.length === 0) return this.also('1 = 0')
    return this.also(`event_type IN (${events.map((name) => this.value(name)).join(', ')})`)
  }

  /** The common part of the queries for the newest events. */
  page({ since, until, before }: Omit<EventListQuery, keyof EventFilter>): this {
    if (since !== undefined) this.also(`h.timestamp >= ${this.moment(since)}`)
    if (until !== undefined) this.also(`h.timestamp < ${this.moment(until)}`)
    if (before === undefined) return this
    return this.also(`(h.timestamp, h.event_id) < (${this.moment(before.at)}, ${this.value(before.id)})`)
  }
}

function select(
  dialect: Dialect,
  conditions: Conditions,
  order: 'ASC' | 'DESC',
  { limit, bytesMax }: PageBounds,
): Query {
  const { columns, table, weight } = dialect
  const { where, values } = conditions
  const by = (name: string): string => `ORDER BY ${name}.timestamp ${order}, ${name}.event_id ${order}`
  const page = (what: string): string =>
    `SELECT ${what} FROM ${table}${where} ${by('h')} LIMIT ${conditions.value(limit)}`
  if (bytesMax === undefined) return { sql: page(columns), values }
  // `total` shows whether the page was cut.
  const weighed = `SELECT p.*, count(*) OVER () AS total, sum(p.weight) OVER (${by('p')}) AS reached FROM (${page(
    `${columns}, ${weight} AS weight`,
  )}) p`
  return {
    sql: `SELECT * FROM (${weighed}) w WHERE w.reached - w.weight < ${conditions.value(bytesMax)} ${by('w')}`,
    values,
  }
}

export function ofJobQuery(dialect: Dialect, jobId: string, { since = 0, ...bounds }: JobHistoryQuery): Query {
  const conditions = new Conditions(dialect).filter({ jobId }).page({ since, ...bounds })
  return select(dialect, conditions, 'ASC', bounds)
}

export function ofWorkerQuery(dialect: Dialect, workerId: string, query: WorkerHistoryQuery): Query {
  const conditions = new Conditions(dialect).filter({ workerId }).also('job_id IS NULL').page(query)
  return select(dialect, conditions, 'DESC', query)
}

export function listQuery(dialect: Dialect, query: EventListQuery): Query {
  return select(dialect, new Conditions(dialect).filter(query).page(query), 'DESC', query)
}

/** For one span. */
export function countQuery(dialect: Dialect, query: EventCountQuery, { since, until }: Span): Query {
  const conditions = new Conditions(dialect).filter(query).page({ since, until, limit: 0 })
  const sql = `SELECT event_type AS event, count(*) AS count FROM ${dialect.table}${conditions.where}
    GROUP BY event_type ORDER BY event_type`
  return { sql, values: conditions.values }
}
