import type { ListQuery } from '@impresario/core'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { floorStatement, isScan, listStatement, waysOf } from './list-statement.ts'
import { oldestStatement } from './oldest-statement.ts'
import { openPostgresStorage } from './open.ts'
import { missingPostgres, startPostgres } from './postgres-server.fixture.ts'
import type { PostgresServer } from './postgres-server.fixture.ts'

/** A node of a plan as `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)` shows it, reduced to the fields used here. */
interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Shared Hit Blocks'?: number
  readonly 'Shared Read Blocks'?: number
  readonly Plans?: readonly PlanNode[]
}

interface Explained {
  readonly query: string
  readonly nodes: readonly PlanNode[]
}

let server: PostgresServer

const SCHEMA = 'planned'
/** Pages that one statement may touch: a claim of 20 writes each of its rows and several index entries. */
const BLOCKS_MAX = 600
const BY_KEY_OR_PLACE = /^(?:Index Scan|Index Only Scan|Tid Scan|ModifyTable)$/
const AHEAD = 100_000
const READY = 50_000

/** Delayed and stuck items, followed by claimable ones. Much faster than committing them. */
function fill(schema: string): string {
  const columns =
    'queue, id, seq, rank, priority, token, due_at, leased_until, alarm_at, deliveries, state, lane, payload'
  const rows = (prefix: string, count: number, values: string): string =>
    `INSERT INTO ${schema}.items (${columns})
      SELECT 'tasks', '${prefix}' || n, n, n, 0, ${values}, 'lane', '{}' FROM generate_series(1, ${count}) AS n`
  return [
    rows('delayed', AHEAD / 2, `0, ${schema}.now_ms() + 3600000, 0, ${schema}.now_ms() + 3600000, 0, 0`),
    rows('stuck', AHEAD / 2, `n, 0, ${schema}.now_ms() + 3600000, ${schema}.now_ms() + 3600000, 1, 2`),
    rows('ready', READY, '0, 0, 0, NULL, 0, 1'),
    `SELECT setval('${schema}.tokens', ${AHEAD})`,
    `INSERT INTO ${schema}.records (kind, id, version, data) SELECT 'key', 'k' || n, 1, '{}' FROM generate_series(1, ${READY}) AS n`,
  ].join(';')
}

/** A connection on which every statement, including those inside functions, reports its plan. */
async function explaining(): Promise<{ readonly run: (sql: string) => Promise<readonly Explained[]> }> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  onTestFinished(() => client.end())
  const texts: string[] = []
  client.on('notice', ({ message }) => texts.push(message ?? ''))
  const on = ['log_analyze', 'log_buffers', 'log_nested_statements'].map((name) => `SET auto_explain.${name} = on`)
  const how = ['log_min_duration = 0', "log_format = 'json'", 'log_timing = off'].map(
    (set) => `SET auto_explain.${set}`,
  )
  await client.query(["LOAD 'auto_explain'", ...on, ...how, 'SET client_min_messages = log'].join(';'))
  return {
    async run(sql) {
      texts.length = 0
      await client.query(sql)
      return texts.filter((text) => text.includes('"Plan":')).map(explained)
    },
  }
}

/** Boundary of the server's output about a plan. */
function explained(text: string): Explained {
  const { 'Query Text': query, Plan: plan } = JSON.parse(text.slice(text.indexOf('{'))) as {
    'Query Text': string
    Plan: PlanNode
  }
  return { query, nodes: below(plan) }
}

function below(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(below)]
}

function touched(all: readonly Explained[]): { readonly rows: number; readonly blocks: number } {
  const rows = all.flatMap(({ nodes }) =>
    nodes.map((node) => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']),
  )
  const blocks = all.map(({ nodes: [top] }) => (top?.['Shared Hit Blocks'] ?? 0) + (top?.['Shared Read Blocks'] ?? 0))
  return { rows: Math.max(...rows), blocks: Math.max(...blocks) }
}

function scansOf(all: readonly Explained[], relation: string): readonly PlanNode[] {
  return all
    .flatMap(({ nodes }) => nodes)
    .filter((node) => node['Relation Name'] === relation && node['Actual Loops'] > 0)
}

/** The statement with its values in it. */
function literal({ text, values }: { readonly text: string; readonly values: readonly unknown[] }): string {
  const written = values.map((value) => {
    if (value === null) return 'NULL'
    if (typeof value === 'number') return String(value)
    return `'${Array.isArray(value) ? `{${value.join(',')}}` : (value as string)}'`
  })
  return text.replaceAll(/\$(\d+)/g, (_, number) => written[Number(number) - 1] ?? '')
}

const claim = (schema: string, request: object): string =>
  `SELECT * FROM ${schema}.claim_all('${JSON.stringify([{ r: 0, queue: 'tasks', amount: 20, lease: 60_000, ...request }])}', 1)`

/** The calls of the storage, and the maximum number of rows that one statement of each may touch. */
function calls(schema: string): readonly (readonly [name: string, sql: string, rowsMax: number])[] {
  const json = (rows: readonly object[]): string => `'${JSON.stringify(rows)}'`
  const held = [1, 2, 3].map((n) => ({ n, q: 'tasks', i: `stuck${n}`, t: n }))
  const ids = `ARRAY['ready40000', 'delayed7']`
  const settle = held.map(({ n, ...row }, b) => ({ n, b, g: true, ...row }))
  const put = [{ n: 0, b: 0, k: 'key', i: 'k40000', v: 2, d: false }]
  return [
    ['claim of lanes', claim(schema, { lanes: ['lane', 'other'], expired: false, holder: 'w' }), 30],
    ['claim in turn', claim(schema, { expired: false }), 30],
    ['claim of the expired', claim(schema, { expired: true }), 30],
    [
      'commit',
      `SELECT ${schema}.commit(${json(settle)}, ${json(put)}, ${json([{ ...put[0], data: '{}' }])}, NULL)`,
      10,
    ],
    [
      'renewal',
      `SELECT * FROM ${schema}.renew(${json(held.map((row) => ({ ...row, t: row.t + 3, i: `stuck${row.t + 3}`, l: 9 })))})`,
      10,
    ],
    ['read', `SELECT * FROM ${schema}.read_all(ARRAY['key', 'key'], ARRAY['k40000', 'k7'])`, 10],
    ['peek', `SELECT * FROM ${schema}.peek_all(ARRAY['tasks', 'tasks'], ${ids})`, 10],
    ['lanes', `SELECT * FROM ${schema}.lanes('tasks')`, 1_000],
    ['oldest', oldestStatement(schema).replaceAll('$1', "'tasks'"), 10],
    ['oldest of a lane', oldestStatement(schema, true).replaceAll('$1', "'tasks'").replaceAll('$2', "'lane'"), 10],
    ['poll', `SELECT ${schema}.ready_lanes('tasks', 100)`, 10],
  ]
}

/** Calls on this connection that do not use a key lookup, or that read more than necessary. */
async function complaints(run: (sql: string) => Promise<readonly Explained[]>): Promise<readonly string[]> {
  const found: string[] = []
  for (const [name, sql, rowsMax] of calls(SCHEMA)) {
    const all = await run(sql)
    const { rows, blocks } = touched(all)
    if (rows > rowsMax) found.push(`${name} touches ${rows} rows`)
    if (blocks > BLOCKS_MAX) found.push(`${name} touches ${blocks} pages`)
    const types = [...scansOf(all, 'items'), ...scansOf(all, 'records')].map((node) => node['Node Type'])
    for (const type of types) if (!BY_KEY_OR_PLACE.test(type)) found.push(`${name} does a ${type}`)
    if (name !== 'claim of lanes') continue
    const nodes = all.find(({ query }) => query.includes('FOR UPDATE SKIP LOCKED'))?.nodes ?? []
    for (const index of ['items_ready', 'items_pkey']) {
      if (!nodes.some((node) => node['Index Name'] === index)) found.push(`${name} does not use ${index}`)
    }
    if (!nodes.some((node) => node['Node Type'] === 'LockRows')) found.push(`${name} locks nothing`)
  }
  return found
}

describe.skipIf(missingPostgres !== undefined)(`PostgreSQL's plans ${missingPostgres ?? ''}`, () => {
  beforeAll(async () => {
    // Automatic statistics must not interfere.
    server = await startPostgres(['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'autovacuum=off'])
  }, 120_000)
  afterAll(() => server.stop())

  test('[G-03] with 100,000 items ahead that cannot be claimed, plans made at any time touch few rows', async () => {
    const storage = await openPostgresStorage({ url: server.url, namespace: SCHEMA, pollMs: 3_600_000 })
    onTestFinished(() => storage.close())
    const old = await explaining()
    // The worst case: the server has exact statistics of empty tables, plans for them, and keeps the plans.
    await server.query(`VACUUM ANALYZE ${SCHEMA}.items, ${SCHEMA}.records`)
    for (const [, sql] of calls(SCHEMA)) await old.run(sql)
    await server.query(fill(SCHEMA))
    expect(await complaints((sql) => old.run(sql))).toEqual([])
    await server.query(`ANALYZE ${SCHEMA}.items, ${SCHEMA}.records`)
    const young = await explaining()
    // Planning reads the catalog, which is not counted here.
    for (const [, sql] of calls(SCHEMA)) await young.run(sql)
    expect(await complaints((sql) => young.run(sql))).toEqual([])
  })

  test('[M-07] a search looks through no more records than it may, and says how far it came', async () => {
    const storage = await openPostgresStorage({ url: server.url, namespace: 'searched' })
    onTestFinished(() => storage.close())
    const ids = Array.from({ length: 40 }, (_, index) => `v${String(index).padStart(2, '0')}`)
    const facets = { owner: 'ann', name: 'press', text: 'hay' }
    await storage.commit({ put: ids.map((id) => ({ kind: 'view', id, version: 1, value: { id }, facets })) })
    const first = await storage.list('view', { limit: 5, search: 'needle', looksMax: 10 })
    expect([first.length, first.next]).toEqual([0, 'v30'])
    const last = await storage.list('view', { limit: 5, name: 'print', looksMax: 10, before: 'v05' })
    expect([last.length, last.next]).toEqual([0, undefined])
    expect(await storage.list('view', { limit: 5, search: 'hay', looksMax: 10 })).toHaveLength(5)
  })

  test('[M-02] lists walk an index in order, with and without statistics, whatever share of the jobs a filter has', async () => {
    const storage = await openPostgresStorage({ url: server.url, namespace: 'listed', pollMs: 3_600_000 })
    onTestFinished(() => storage.close())
    // Few are quarantined, and they are the oldest; few are Cat's; of Bob's none has failed.
    await server.query(`INSERT INTO listed.records (kind, id, version, owner, status, name, data)
      SELECT 'job', 'j' || lpad(n::text, 6, '0'), 1, CASE WHEN n % 10 = 0 THEN 'bob' WHEN n % 9999 = 7 THEN 'cat' ELSE 'ann' END,
        CASE WHEN n < 10 THEN 'quarantined' WHEN n % 50 = 1 THEN 'failed' ELSE 'finished' END,
        CASE WHEN n % 3 = 0 THEN 'print' ELSE 'press' END, '{}' FROM generate_series(1, ${AHEAD}) AS n`)
    const { run } = await explaining()
    const statuses = [[], ['finished'], ['failed'], ['quarantined'], ['failed', 'quarantined'], ['finished', 'failed']]
    const looksMax = 500
    const queries = statuses.flatMap((some) =>
      [undefined, 'ann', 'bob', 'cat', 'nobody'].flatMap((owner) =>
        [undefined, 'print', 'nothing'].map((name): ListQuery => ({
          limit: 20,
          looksMax,
          ...(some.length === 0 ? {} : { statuses: some }),
          ...(owner === undefined ? {} : { owner }),
          ...(name === undefined ? {} : { name }),
        })),
      ),
    )
    const statements = queries.flatMap((query) => {
      const ways = waysOf('job', query)
      const pages = ways.map((way) => listStatement('listed', 'job', query, way, isScan(way, query)))
      return [floorStatement('listed', 'job', query, ways), ...pages].map(literal)
    })
    const tooMany: unknown[] = []
    const look = async (): Promise<void> => {
      for (const sql of statements) {
        const { rows } = touched(await run(sql))
        if (rows > 2 * looksMax) tooMany.push({ sql, rows })
      }
    }
    await look()
    await server.query('ANALYZE listed.records')
    await look()
    expect(tooMany).toEqual([])
    const found = async (query: Partial<ListQuery>): Promise<number> =>
      (await storage.list('job', { limit: 20, looksMax, ...query })).length
    // Of two indexes the one that leads to fewer records is taken.
    expect(await found({ statuses: ['quarantined'], owner: 'ann' })).toBe(8)
    expect(await found({ statuses: ['failed', 'finished'], owner: 'cat' })).toBe(9)
    const none = await storage.list('job', { limit: 20, looksMax, statuses: ['failed'], owner: 'bob' })
    expect([none.length, none.next]).toEqual([0, 'j075001'])
  })

  test('[K-04] among 100,000 triggers of one owner, those of a name are found by the index of names', async () => {
    const storage = await openPostgresStorage({ url: server.url, namespace: 'heard', pollMs: 3_600_000 })
    onTestFinished(() => storage.close())
    const { run } = await explaining()
    await server.query(`INSERT INTO heard.records (kind, id, version, owner, name, data)
      SELECT 'subscription', 'a' || n || '.0', 1, 'ann', '=topic.' || n, '{}' FROM generate_series(1, ${AHEAD}) AS n`)
    for (const query of [{ owner: 'ann' }, {}, { owner: 'ann', before: 'b' }]) {
      const { text, values } = listStatement(
        'heard',
        'subscription',
        { ...query, name: '=topic.777', limit: 200 },
        'name',
      )
      const types = values.map((value) => (typeof value === 'number' ? 'bigint' : 'text'))
      const given = values.map((value) => (typeof value === 'number' ? value : `'${String(value)}'`))
      // A plan that is made once and knows no values.
      const name = `heard_${Object.keys(query).length}`
      await run(`SET plan_cache_mode = force_generic_plan; PREPARE ${name} (${types.join(', ')}) AS ${text}`)
      const all = await run(`EXECUTE ${name} (${given.join(', ')})`)
      expect(touched(all).rows).toBeLessThan(10)
      expect(scansOf(all, 'records').map((node) => node['Index Name'])).toEqual(['records_by_name'])
    }
    expect(await storage.list('subscription', { owner: 'ann', name: '=topic.777', limit: 9 })).toHaveLength(1)
    expect(await storage.list('subscription', { owner: 'ben', name: '=topic.777', limit: 9 })).toHaveLength(0)
  })
})
