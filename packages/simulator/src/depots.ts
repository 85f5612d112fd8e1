import type { LeaseRef, Storage } from '@impresario/core'
import { EmbeddedStorage, createMemoryStorage, createVolatileJournal } from '@impresario/storage-embedded'
import type { Changes, ClaimMarks, Journal, VolatileJournal } from '@impresario/storage-embedded'
import { bringing } from './brought-jobs.ts'
import type { Bug } from './bugs/bug.ts'
import { wakeUp } from './checkers/wake-up.ts'
import type { Version } from './chronicle.ts'
import { Connection } from './connection.ts'
import type { Link } from './connection.ts'
import type { Depot, Setting } from './fleet.ts'
import { never } from './node.ts'
import type { Node } from './node.ts'
import { Recorder } from './recorder.ts'
import { lookAround } from './sight.ts'

interface DepotParts extends Setting {
  readonly linkOf: (node: Node) => Link
  readonly bug: Bug | undefined
}

/** One storage that all processes share and that outlives them. */
export function sharedDepot(parts: DepotParts): Depot {
  const { world, bug } = parts
  const truth = createMemoryStorage({ now: () => world.now })
  const storage = bringing(truth, world.chance('brought jobs'))
  const inner = bug?.below?.(storage, world) ?? storage
  const recorder = new Recorder({ ...parts, inner, truth })
  return {
    truth,
    open: async (node) => {
      bug?.onBoot?.()
      return through(recorder, node, parts)
    },
  }
}

function through(recorder: Recorder, node: Node, { linkOf, bug, world }: DepotParts): Storage {
  const connection = new Connection(recorder, linkOf(node))
  return bug?.above?.(connection, world) ?? connection
}

/** A storage inside the process, with write-behind to a disk that outlives it. */
export function embeddedDepot(parts: DepotParts, cacheMax: number): Depot {
  const { world, bug, faults, tally, chronicle, jobs } = parts
  const chance = world.chance('disk')
  let current: Node | undefined
  let truth: EmbeddedStorage | undefined
  const beforeWrite = async (): Promise<void> => {
    const node = current
    await world.sleep(chance.between(0, faults.syncMs))
    if (node?.isAlive === true && chance.happens(faults.writeCrash)) {
      tally.sometimes('fault: crash while writing')
      node.die()
    }
    // Writes in progress when a process dies may or may not reach the disk.
    if (node?.isAlive !== true) await (chance.happens(0.5) ? undefined : never())
    if (chance.happens(faults.writeFailure)) {
      tally.sometimes('fault: write failed')
      throw new Error('The disk is full.')
    }
  }
  let disk: VolatileJournal = createVolatileJournal({ beforeWrite })
  const marks: Marks = { marked: new Set(), settled: new Map() }
  const open = async (node: Node): Promise<Storage> => {
    const isFirst = current === undefined
    current = node
    disk = disk.reopened()
    bug?.onBoot?.()
    const opening = watchedJournal(disk, async () => {
      if (!node.isAlive || !chance.happens(faults.writeCrash)) return
      tally.sometimes('fault: crash after writing')
      node.die()
      await never()
    })
    const journal = bug?.journal?.(opening.journal, world) ?? opening.journal
    const storage = new EmbeddedStorage({
      now: () => world.now,
      journal,
      marks: marksIn(marks, node),
      cacheMax,
      // As with a long queue: what a start finds stays on the disk until it is needed.
      restingMin: 0,
      schedule: (run) => world.after(0, () => node.whenRunning(run)),
      onFailure: () => node.die(),
    })
    truth = storage
    const inner = bug?.below?.(storage, world) ?? storage
    if (!isFirst) await reopened(parts, storage, opening)
    chronicle.note(node.name, `opened ${jobs.size} jobs`)
    return through(new Recorder({ ...parts, inner, truth: storage }), node, parts)
  }
  return {
    open,
    get truth() {
      if (truth === undefined) throw new Error('The storage was never opened.')
      return truth
    },
  }
}

interface Marks {
  readonly marked: Set<number>
  readonly settled: Map<number, number>
}

/** Data that a process wrote without waiting for the disk outlives it, as in the page cache of an operating system. */
function marksIn({ marked, settled }: Marks, node: Node): ClaimMarks {
  const whileAlive = (change: () => void): void => {
    if (node.isAlive) change()
  }
  return {
    left: new Set(marked),
    settledBefore: new Map(settled),
    claimed: (turns) =>
      whileAlive(() => {
        for (const turn of turns) {
          marked.add(turn)
          settled.delete(turn)
        }
      }),
    settled: (turn, token) =>
      whileAlive(() => {
        marked.delete(turn)
        settled.set(turn, token)
      }),
    handedBack: (turn) => whileAlive(() => marked.delete(turn)),
    gone: (turn) => whileAlive(() => marked.delete(turn)),
    close: () =>
      whileAlive(() => {
        marked.clear()
        settled.clear()
      }),
  }
}

/** The durable state of the tasks when it was opened. */
interface Survivors {
  readonly leases: readonly LeaseRef[]
  readonly deliveries: ReadonlyMap<string, number>
}

function watchedJournal(disk: Journal, afterWrite: () => Promise<void>): { readonly journal: Journal } & Survivors {
  const leases: LeaseRef[] = []
  const deliveries = new Map<string, number>()
  const journal: Journal = {
    open: () => {
      const opened = disk.open()
      for (const row of opened.items(0, Infinity)) {
        if ('idBytes' in row) continue
        const { queue, id, token, deliveries: count } = row
        if (queue === 'tasks') deliveries.set(id, count)
        if (token !== 0) leases.push({ queue: queue as LeaseRef['queue'], id, token })
      }
      return opened
    },
    write: async (changes: Changes) => {
      const hasRemains = await disk.write(changes)
      await afterWrite()
      return hasRemains
    },
    read: (kind, id) => disk.read(kind, id),
    readFrom: (kind, id, limit, charsMax) => disk.readFrom(kind, id, limit, charsMax),
    list: (kind, query) => disk.list(kind, query),
    floor: (kind, query, looksMax) => disk.floor(kind, query, looksMax),
    expiring: (after, until) => disk.expiring(after, until),
    itemsFrom: (queue, id, limit) => disk.itemsFrom(queue, id, limit),
    item: (queue, id) => disk.item(queue, id),
    itemsDue: (queue, after, until) => disk.itemsDue(queue, after, until),
    payload: (queue, id) => disk.payload(queue, id),
    lastId: (kind) => disk.lastId(kind),
    close: () => disk.close(),
  }
  return { journal, leases, deliveries }
}

/** Records what survived a crash, and checks that it is complete. */
async function reopened(parts: Setting, storage: Storage, { leases, deliveries }: Survivors): Promise<void> {
  const { chronicle, tally, jobs } = parts
  const listed = await storage.list('job', { limit: 1_000_000 })
  const found: readonly Version[] = listed.map(({ id, version, value }) => ({ id, version, job: value }))
  const durable = new Map(found.map((version) => [version.id, version]))
  const isShort = [...jobs.values()].some(({ id, version }) => version > (durable.get(id)?.version ?? 0))
  tally.sometimes(isShort ? 'commits lost in a crash' : 'nothing lost in a crash')
  jobs.clear()
  for (const [id, version] of durable) jobs.set(id, version)
  chronicle.add({ type: 'reopened', jobs: found, leases, deliveries })
  const { sight } = await lookAround(storage, found, [])
  for (const { job } of found) {
    for (const { rule, problem } of wakeUp(job, sight)) chronicle.broken(rule, problem)
  }
}
