import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type {
  Transferable,
  TransferItem,
  TransferPage,
  TransferRecord,
  Origin,
  PageSize,
  Queue,
  Storage,
} from '@impresario/core'
import { QUEUES } from '@impresario/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startRedis } from '../../../../test/servers/redis-server.ts'
import type { TestServer } from '../../../../test/servers/redis-server.ts'
import { startPostgres } from '../../../../test/servers/postgres-server.ts'
import type { PostgresServer } from '../../../../test/servers/postgres-server.ts'
import { newDirectory } from '../../../../test/servers/run-directory.ts'
import { createClock } from '../runtime/clock.ts'
import { SILENT } from '../runtime/log.ts'
import { openStorage } from '../orchestrator/storage.ts'
import { CLAIMED, fill, seen } from './contents.fixture.ts'
import { transferStorage, planTransfer, unmark } from './storage-transfer.ts'
import { transfer } from './transfer.ts'
import type { TransferOptions } from './transfer.ts'
import { openTransferable } from './open-side.ts'

let postgres: PostgresServer
let redis: TestServer
let directory = ''
let places = 0

beforeAll(async () => {
  directory = newDirectory('moving')
  ;[postgres, redis] = await Promise.all([startPostgres(), startRedis()])
})

afterAll(async () => {
  await Promise.all([postgres.stop(), redis.remove()])
  rmSync(directory, { recursive: true, force: true })
})

/** A new, empty place of each kind. */
const PLACES = {
  file: () => `file:${join(directory, `data-${++places}`)}`,
  postgres: () => `${postgres.url}?schema=place_${++places}`,
  redis: () => `${redis.url}?namespace=place-${++places}`,
  shards: () => `${redis.url}?namespace=place-${++places}&shards=3`,
}

function open(url: string): Storage {
  return openStorage(url, {
    clock: createClock(),
    log: SILENT,
    instanceId: 'test-1',
    waitMs: 0,
    signal: new AbortController().signal,
    onFailure: (error) => {
      throw error
    },
  })
}

async function filled(url: string, seed: number, count: number): Promise<string> {
  const storage = open(url)
  await fill(storage, seed, count)
  await storage.close()
  return url
}

interface Everything {
  readonly records: readonly TransferRecord[]
  readonly items: readonly TransferItem[]
}

const SIZE: PageSize = { entriesMax: 37, bytesMax: 20_000 }

async function everything(storage: Transferable, origin: Origin): Promise<Everything> {
  const records: TransferRecord[] = []
  const items: TransferItem[] = []
  let cursor: string | undefined
  do {
    const page: TransferPage = await storage.dump(origin, cursor, SIZE)
    records.push(...page.records)
    items.push(...page.items)
    cursor = page.next
  } while (cursor !== undefined)
  const byName = (a: string, b: string): number => (a < b ? -1 : 1)
  records.sort((a, b) => byName(`${a.kind} ${a.id}`, `${b.kind} ${b.id}`))
  items.sort((a, b) => byName(`${a.queue} ${a.id}`, `${b.queue} ${b.id}`))
  return { records, items }
}

async function withTransferable<T>(url: string, use: (storage: Transferable) => Promise<T>): Promise<T> {
  const storage = (await openTransferable(url, true))!
  try {
    return await use(storage)
  } finally {
    await storage.close()
  }
}

/** Moves by hand, so that the two moments of the transfer are known, and everything can be compared entry by entry. */
async function moved(from: string, to: string, options: Partial<TransferOptions> = {}): Promise<readonly Everything[]> {
  return withTransferable(from, (source) =>
    withTransferable(to, async (target) => {
      const origins: { source?: Origin; target?: Origin } = {}
      const spied: Transferable = spy(target, {
        load: (origin, page, mark) => {
          origins.target = origin
          return target.load(origin, page, mark)
        },
      })
      const read: Transferable = spy(source, {
        dump: (origin, cursor, size) => {
          origins.source = origin
          return source.dump(origin, cursor, size)
        },
      })
      await transfer({ from: { storage: read, name: 'A' }, to: { storage: spied, name: 'B' }, size: SIZE, ...options })
      const before = await everything(source, origins.source!)
      const fitted = target.fitted({ ...before, next: undefined })
      return [{ records: fitted.records, items: fitted.items }, await everything(target, origins.target!)]
    }),
  )
}

/** The same storage with some other methods. */
function spy(storage: Transferable, methods: Partial<Transferable>): Transferable {
  return {
    mark: () => storage.mark(),
    setMark: (mark) => storage.setMark(mark),
    users: () => storage.users(),
    outline: () => storage.outline(),
    counts: () => storage.counts(),
    fitted: (page) => storage.fitted(page),
    dump: (origin, cursor, size) => storage.dump(origin, cursor, size),
    load: (origin, page, mark) => storage.load(origin, page, mark),
    finish: (lastToken) => storage.finish(lastToken),
    clear: () => storage.clear(),
    close: () => storage.close(),
    ...methods,
  }
}

/** What Redis makes of a half of a character, which MessagePack does not have. */
function whole(sight: unknown): unknown {
  return JSON.parse(JSON.stringify(sight).replaceAll(String.raw`\ud800`, '\uFFFD')) as unknown
}

type Ids = Readonly<Record<Queue, readonly string[]>>

async function idsIn(url: string): Promise<Ids> {
  const ids = Object.fromEntries(QUEUES.map((queue) => [queue, [] as string[]])) as Record<Queue, string[]>
  const { items } = await withTransferable(url, (storage) => everything(storage, { at: 0, first: 0, step: 1 }))
  for (const { queue, id } of items) ids[queue].push(id)
  return ids
}

async function look(url: string, ids: Ids): Promise<unknown> {
  const storage = open(url)
  try {
    return await seen(storage, ids)
  } finally {
    await storage.close()
  }
}

describe('everything arrives', () => {
  test(
    '[G-01] [I-01] on a way through all kinds of storages, by which each is reached from each',
    { timeout: 90_000 },
    async () => {
      let from = await filled(PLACES.file(), 7, 80)
      const ids = await idsIn(from)
      let sight = await look(from, ids)
      for (const kind of [
        'file',
        'redis',
        'shards',
        'postgres',
        'postgres',
        'shards',
        'redis',
        'file',
        'postgres',
        'file',
      ] as const) {
        const to = PLACES[kind]()
        const [sent, received] = await moved(from, to)
        expect(received).toEqual(sent)
        expect(sent!.records.length).toBeGreaterThan(40)
        expect(sent!.items.length).toBeGreaterThan(120)
        if (kind === 'redis' || kind === 'shards') sight = whole(sight)
        expect(await look(to, ids)).toEqual(sight)
        from = to
      }
    },
  )

  test.for(['redis', 'shards', 'postgres'] as const)(
    '[G-01] what processes on %s had in their hands is free after a transfer, what others hold is theirs',
    async (kind) => {
      const from = PLACES[kind]()
      const crashed = open(from)
      await fill(crashed, 8, 40)
      const to = PLACES.file()
      const [sent, received] = await moved(from, to, { force: true })
      expect(received).toEqual(sent)
      const leases = received!.items.flatMap(({ lease }) => lease ?? [])
      expect([...new Set(leases.map(({ holder }) => holder))]).toEqual(
        expect.arrayContaining(CLAIMED.map((queue) => `worker-${queue}`)),
      )
      const target = open(to)
      for (const queue of QUEUES) {
        const ids = received!.items.filter((item) => item.queue === queue).map(({ id }) => id)
        const views = await crashed.peek(queue, ids)
        const expected = views.map((view) => (view?.lease?.holder === undefined ? undefined : view.lease.token))
        expect((await target.peek(queue, ids)).map((view) => view?.lease?.token)).toEqual(expected)
      }
      await Promise.all([target.close(), crashed.close()])
    },
  )

  test('[G-01] a claim after the transfer never has a token from before it', async () => {
    const tokens: number[] = []
    let url = PLACES.file()
    for (const next of [PLACES.redis(), PLACES.postgres(), PLACES.shards(), PLACES.file(), PLACES.redis()]) {
      const storage = open(url)
      await storage.commit({ enqueue: [{ queue: 'tasks', id: 'a', lane: 'l', priority: 0, delayMs: 0, payload: {} }] })
      const { leases } = await storage.claim('tasks', { limit: 1, leaseMs: 60_000 })
      await storage.close()
      tokens.push(...leases.map(({ token }) => token))
      await transferStorage({ from: url, to: next })
      url = next
    }
    expect(tokens).toHaveLength(5)
    expect([...new Set(tokens)].sort((x, y) => x - y)).toEqual(tokens)
  })

  test('[G-01] new items come after those that have been moved', async () => {
    const from = PLACES.postgres()
    const item = (id: string) => ({ queue: 'tasks', id, lane: 'l', priority: 0, delayMs: 0, payload: {} }) as const
    const storage = open(from)
    await storage.commit({ enqueue: ['d', 'b', 'c', 'a'].map(item) })
    await storage.close()
    const to = PLACES.file()
    await transferStorage({ from, to })
    const target = open(to)
    await target.commit({ enqueue: [item('0')] })
    const { leases } = await target.claim('tasks', { limit: 10, leaseMs: 1_000, lanes: ['l'] })
    expect(leases.map(({ id }) => id)).toEqual(['d', 'b', 'c', 'a', '0'])
    await target.close()
  })
})

/** One run, with storages that may break. */
async function attempt(
  from: string,
  to: string,
  breakTarget: (storage: Transferable) => Transferable,
  breakSource: (storage: Transferable) => Transferable = (storage) => storage,
): Promise<string> {
  try {
    return await withTransferable(from, (source) =>
      withTransferable(to, async (target) => {
        const sides = {
          from: { storage: breakSource(source), name: 'A' },
          to: { storage: breakTarget(target), name: 'B' },
        }
        return (await transfer({ ...sides, size: SIZE })).outcome.replace('earlier', 'moved')
      }),
    )
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Why nobody may work there, in its first words. */
function refusalOf(url: string): string | undefined {
  try {
    void open(url).close()
    return undefined
  } catch (error) {
    return /(?:is being|was) moved to B|holds only a part/.exec(String(error))?.[0]
  }
}

describe('a transfer that is cut short', () => {
  test('[G-01] goes on where it stopped, whatever page it had come to', async () => {
    const from = await filled(PLACES.file(), 11, 60)
    const to = PLACES.file()
    let runs = 0
    const outcomes: unknown[] = []
    for (let isDone = false; !isDone; runs++) {
      // One page is written for each run, and of every second run it is not known whether the page was written.
      let loads = 0
      const load =
        (target: Transferable): Transferable['load'] =>
        async (origin, page, mark) => {
          if (loads++ > 0) throw new Error('cut short')
          await target.load(origin, page, mark)
          if (runs % 2 === 0) throw new Error('cut short')
        }
      const outcome = await attempt(from, to, (target) => spy(target, { load: load(target) }))
      isDone = outcome === 'moved'
      if (isDone) break
      // Nobody works on a part of it, nor on what is being left.
      outcomes.push(outcome, refusalOf(from), refusalOf(to))
    }
    expect([...new Set(outcomes)]).toEqual(['cut short', 'is being moved to B', 'holds only a part'])
    expect(runs).toBeGreaterThan(4)
    expect(() => open(from)).toThrow(/was moved to B/)
    await open(to).close()
  })

  test('[G-01] between any two of its steps ends with the same result', async () => {
    const from = await filled(PLACES.file(), 12, 10)
    const to = PLACES.file()
    let runs = 0
    for (let isDone = false; !isDone; runs++) {
      let steps = 0
      const isOver = (): boolean => ++steps > runs
      const breaking = (storage: Transferable): Transferable =>
        spy(storage, {
          setMark: async (mark) => {
            await storage.setMark(mark)
            if (isOver()) throw new Error('cut short')
          },
          finish: async (lastToken) => {
            await storage.finish(lastToken)
            if (isOver()) throw new Error('cut short')
          },
        })
      const outcome = await attempt(from, to, breaking, breaking)
      expect(['cut short', 'moved']).toContain(outcome)
      isDone = outcome === 'moved'
    }
    expect(runs).toBeGreaterThanOrEqual(5)
    expect(() => open(from)).toThrow(/was moved to B/)
    await open(to).close()
  })

  test.for(['postgres', 'shards'] as const)(
    '[G-01] into %s is not mixed with a source that has been used since, and can be begun anew',
    async (kind) => {
      const from = await filled(PLACES.file(), 13, 60)
      const to = PLACES[kind]()
      const cut = (target: Transferable): Transferable => {
        let loads = 0
        const load: Transferable['load'] = (origin, page, mark) => {
          if (loads++ > 0) throw new Error('cut short')
          return target.load(origin, page, mark)
        }
        return spy(target, { load })
      }
      await expect(
        withTransferable(from, (source) =>
          withTransferable(to, (target) =>
            transfer({ from: { storage: source, name: 'A' }, to: { storage: cut(target), name: 'B' }, size: SIZE }),
          ),
        ),
      ).rejects.toThrow('cut short')
      await unmark(from)
      const storage = open(from)
      await storage.commit({
        enqueue: [{ queue: 'tasks', id: 'new', lane: 'l', priority: 0, delayMs: 0, payload: {} }],
      })
      await storage.close()
      await expect(transferStorage({ from, to, size: SIZE })).rejects.toThrow(/part of an earlier transfer.*--restart/)
      await expect(unmark(to)).rejects.toThrow(/only a part/)
      const report = await transferStorage({ from, to, size: SIZE, restart: true })
      expect(report).toMatchObject({ outcome: 'moved', isResumed: false })
      const target = open(to)
      expect(await target.peek('tasks', ['new'])).toEqual([expect.objectContaining({ id: 'new' })])
      await target.close()
    },
  )

  test('[G-01] is left to whoever has taken it over', async () => {
    const from = await filled(PLACES.file(), 14, 40)
    const to = PLACES.file()
    await withTransferable(from, (source) =>
      withTransferable(to, async (target) => {
        let loads = 0
        const load: Transferable['load'] = async (origin, page, mark) => {
          if (loads++ === 1) {
            const found = await target.mark()
            await target.setMark({ ...found!, run: 'another' })
          }
          return target.load(origin, page, mark)
        }
        const sides = { from: { storage: source, name: 'A' }, to: { storage: spy(target, { load }), name: 'B' } }
        await expect(transfer({ ...sides, size: SIZE })).rejects.toThrow(/taken over this transfer/)
      }),
    )
  })
})

describe('a transfer that must not be', () => {
  test('[G-01] is refused while an orchestrator is at work on either side', async () => {
    const from = await filled(PLACES.postgres(), 15, 5)
    const to = PLACES.file()
    const busy = open(from)
    await busy.sync()
    await expect(transferStorage({ from, to })).rejects.toThrow(/in use by test-1/)
    await busy.close()
    const other = open(to)
    await expect(transferStorage({ from, to })).rejects.toThrow(/in use by process/)
    await other.close()
    expect((await transferStorage({ from, to })).outcome).toBe('moved')
  })

  test('[G-01] is refused when an orchestrator was faster than the mark', async () => {
    const from = await filled(PLACES.postgres(), 15, 5)
    const busy = await withTransferable(from, (source) =>
      withTransferable(PLACES.file(), async (target) => {
        const client = postgres.query.bind(postgres)
        const finish: Transferable['finish'] = async (lastToken) => {
          await target.finish(lastToken)
          const schema = new URL(from).searchParams.get('schema')!
          await client(`SELECT "${schema}".begin_session('late', 20000)`)
        }
        const sides = { from: { storage: source, name: 'A' }, to: { storage: spy(target, { finish }), name: 'B' } }
        return transfer(sides).catch((error: unknown) => error)
      }),
    )
    expect(String(busy)).toMatch(/in use by late/)
  })

  test('[G-01] is refused when the target holds something, and changes nothing', async () => {
    const [from, to] = [await filled(PLACES.file(), 16, 5), await filled(PLACES.file(), 17, 5)]
    await expect(transferStorage({ from, to })).rejects.toThrow(/is not empty: it holds \d+/)
    await open(from).close()
    await open(to).close()
  })

  test('[G-01] is refused from nowhere, from memory, and onto itself', async () => {
    const from = await filled(PLACES.postgres(), 18, 5)
    const file = await filled(PLACES.file(), 18, 5)
    await expect(transferStorage({ from: PLACES.file(), to: from })).rejects.toThrow(/no data of Impresario/)
    await expect(transferStorage({ from: PLACES.postgres(), to: file })).rejects.toThrow(/no data of Impresario/)
    await expect(transferStorage({ from: 'memory:', to: from })).rejects.toThrow(/ends with its process/)
    await expect(transferStorage({ from: 'ftp://user:secret@host', to: from })).rejects.not.toThrow(/secret/)
    await expect(transferStorage({ from: file, to: `${file}/../${file.split('/').at(-1)}` })).rejects.toThrow(
      /same directory/,
    )
    await expect(transferStorage({ from, to: `${from}&pool_max=3` })).rejects.toThrow(/same storage/)
    expect((await planTransfer({ from, to: PLACES.file() })).sourceMark).toBeUndefined()
    await open(from).close()
  })

  test('[G-01] is reported when something arrived as something else', async () => {
    const from = await filled(PLACES.file(), 19, 20)
    const to = PLACES.file()
    await withTransferable(from, (source) =>
      withTransferable(to, async (target) => {
        const load: Transferable['load'] = (origin, page, mark) => {
          const records = page.records.map((record, index) => (index === 3 ? { ...record, version: 99 } : record))
          const items = page.items.slice(1)
          return target.load(origin, { ...page, records, items }, mark)
        }
        const sides = { from: { storage: source, name: 'A' }, to: { storage: spy(target, { load }), name: 'B' } }
        await expect(transfer(sides)).rejects.toThrow(
          /queue: \d+ were sent and \d+ are there.*all \d+ are there, but not all as they were|all \d+ are there, but not all as they were.*queue: \d+ were sent and \d+ are there/,
        )
      }),
    )
    expect((await transferStorage({ from, to, restart: true })).outcome).toBe('moved')
  })
})

test('[G-01] a copy leaves its source as usable as it was; a transfer that is over is not done twice', async () => {
  const from = await filled(PLACES.file(), 20, 20)
  const [copy, to] = [PLACES.file(), PLACES.file()]
  expect((await transferStorage({ from, to: copy, keepSource: true })).outcome).toBe('copied')
  await open(from).close()
  await open(copy).close()
  expect((await transferStorage({ from, to })).outcome).toBe('moved')
  expect((await transferStorage({ from, to })).outcome).toBe('earlier')
  await expect(transferStorage({ from, to: PLACES.file() })).rejects.toThrow(/was moved to.*--unmark/)
  expect(await unmark(from)).toMatchObject({ state: 'moved' })
  await open(from).close()
})

test('[G-01] the checksums of the same entries are equal over all legs: file, PostgreSQL, Redis, file', async () => {
  const legs = [PLACES.file(), PLACES.postgres(), PLACES.redis(), PLACES.file()]
  const [first = ''] = legs
  const storage = open(first)
  const put = Array.from({ length: 20 }, (_, index) => ({
    kind: 'delivery' as const,
    id: `m${index}`,
    value: { n: index, text: 'ä€' },
    version: 1,
    facets: { owner: 'ann', status: 'pending', name: 'x', text: 'y' },
    expiresMs: 86_400_000,
  }))
  const enqueue = put.map(({ id }, index) => ({
    queue: 'outbox' as const,
    id,
    lane: 'ann',
    priority: index % 3,
    delayMs: index * 60_000,
    payload: { index },
    settleMs: 90_000_000,
  }))
  await storage.commit({ put, enqueue })
  await storage.claim('outbox', { limit: 1, leaseMs: 80_000_000, holder: 'somebody outside' })
  await storage.close()
  const sums: string[][] = []
  for (const [index, from] of legs.slice(0, -1).entries()) {
    const { entries } = await transferStorage({ from, to: legs[index + 1] ?? '' })
    sums.push(Object.entries(entries).map(([name, { count, checksum }]) => `${name} ${count} ${checksum}`))
  }
  expect(sums[0]).toHaveLength(2)
  expect(sums).toEqual([sums[0], sums[0], sums[0]])
})
