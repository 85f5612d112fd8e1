import { jsonWeight } from '@impresario/protocol'
import type { TaskCall } from '../job/job.ts'
import type { WorkerRecord } from '../worker/worker.ts'
import { hasFreeSlot, isAccepting, isStaying } from './demand.ts'
import type { Candidate, Demand } from './demand.ts'
import { fits } from './match.ts'
import { Ordering, isKeepable } from './ordering.ts'
import { Contest } from './rank.ts'
import { STRATEGIES, questionOf, strategyNamed, isRotating } from './strategies.ts'
import type { Strategies, Strategy } from './strategies.ts'

/** All workers that can start one type of task, and those of them that can do so at this moment. */
interface Skill {
  readonly name: string
  readonly workers: Set<Entry>
  /** In no order. An array, because a set of 5,000 took 12 µs for one worker to leave and come back. */
  readonly open: Seat[]
  /** Who got the last task of this type, for strategies that rotate. */
  last: string | undefined
  /** Choices of other instances that are to be left out here, by worker. */
  readonly given: Map<string, number>
  /** Orders that are kept because they are asked for often, the one that was asked for last at the end. */
  readonly orderings: Map<string, Ordering>
  /** How often an order was asked for that is not kept. */
  readonly asked: Map<string, number>
}

/** Fewer open workers than this are looked at one by one: that is faster than to keep them in order. */
const KEPT_FROM = 256
/** To put n workers in order costs about as much as looking at all of them this often. */
const ASKED_MIN = 32
/** Every change of a worker is told to each kept order. */
const ORDERINGS_MAX = 8
const ASKED_MAX = 1_000
/**
 * A worker may be chosen elsewhere when it could not have been chosen here, for tasks that others do not fit. It need not make up for
 * all of them, and a choice need not leave out more than so many laps.
 */
const GIVEN_MAX = 16

/** A worker's place in one of its skills. */
interface Seat {
  readonly entry: Entry
  readonly skill: Skill
  /** Where it stands in `skill.open`, while its worker is open. */
  at: number
}

/** A candidate that changes with its worker. Callers see it as a `Candidate` and read it at once. */
interface Entry {
  /** What the record takes of the memory. */
  bytes: number
  worker: WorkerRecord
  load: number
  asked: number
  seats: readonly Seat[]
  isOpen: boolean
}

/**
 * The live workers, arranged so that a choice looks only at those that could be chosen.
 *
 * A worker is *listed* under each skill that it can start from `put` until `remove`. While listed it
 * is *open* or *closed*: open when its status accepts tasks and it has a free slot, closed otherwise.
 * A change of load or status moves it between the two, in time that does not depend on the number
 * of workers. The load belongs to the id and survives every `put`; `remove` forgets it.
 */
export class WorkerIndex {
  readonly #strategies: Strategies
  readonly #onRotated: (type: string, workerId: string) => void
  readonly #entries = new Map<string, Entry>()
  readonly #skills = new Map<string, Skill>()
  readonly #contest = new Contest()
  #bytes = 0

  /** `onRotated` hears who was chosen in rotation here, for other instances: see `rotatedElsewhere`. */
  constructor(known: Strategies = STRATEGIES, onRotated: (type: string, workerId: string) => void = () => {}) {
    this.#strategies = known
    this.#onRotated = onRotated
  }

  get size(): number {
    return this.#entries.size
  }

  /** What all records take of the memory, about. */
  get bytes(): number {
    return this.#bytes
  }

  get(id: string): WorkerRecord | undefined {
    return this.#entries.get(id)?.worker
  }

  all(): Iterable<Candidate> {
    return this.#entries.values()
  }

  put(worker: WorkerRecord): void {
    const entry = this.#entries.get(worker.id)
    const bytes = jsonWeight(worker)
    this.#bytes += bytes - (entry?.bytes ?? 0)
    if (entry === undefined) {
      const added: Entry = { worker, bytes, load: 0, asked: 0, seats: [], isOpen: false }
      this.#entries.set(worker.id, added)
      this.#list(added)
      this.#settle(added)
      return
    }
    const isListedRight = hasSameSkills(entry.worker, worker)
    if (!isListedRight) this.#unlist(entry)
    entry.worker = worker
    entry.bytes = bytes
    if (!isListedRight) this.#list(entry)
    this.#settle(entry)
  }

  remove(id: string): boolean {
    const entry = this.#entries.get(id)
    if (entry === undefined) return false
    this.#unlist(entry)
    this.#bytes -= entry.bytes
    return this.#entries.delete(id)
  }

  /** Tasks that the worker has; zero for one that is not here. */
  load(id: string): number {
    return this.#entries.get(id)?.load ?? 0
  }

  /**
   * Never goes below zero: a worker that was removed and came back starts from zero, and the ends
   * of its earlier tasks still arrive. Nothing happens for a worker that is not here.
   */
  addLoad(id: string, by: number): void {
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    entry.load = Math.max(0, entry.load + by)
    this.#settle(entry)
  }

  /** The worker asks for tasks: how many it has, with all that it asks for. Like the load this survives every `put`. */
  setAsked(id: string, asked: number): void {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.asked === asked) return
    entry.asked = asked
    this.#settle(entry)
  }

  /** Sets the load after a recount: after a restart, or when a worker comes back. */
  setLoad(id: string, load: number): void {
    this.addLoad(id, load - this.load(id))
  }

  /** Workers that can start such a task now, whatever else it may require. */
  available(type: string): readonly Candidate[] {
    return (this.#skills.get(type)?.open ?? []).map((seat) => seat.entry)
  }

  /** Who got the last task of this type. */
  last(type: string): string | undefined {
    return this.#skills.get(type)?.last
  }

  /** The worker for this task, if any. Does not change its load: that follows once the task is really given. */
  choose(call: TaskCall, exclude: readonly string[] = []): Candidate | undefined {
    const strategy = strategyNamed(call.strategy, this.#strategies)
    const skill = this.#skills.get(call.type)
    if (skill === undefined || skill.open.length === 0) return undefined
    const ordering = skill.open.length < KEPT_FROM ? undefined : orderingFor(skill, strategy, call)
    for (;;) {
      const chosen = ordering ? ordering.best(exclude, skill.last) : this.#compete(skill, strategy, call, exclude)
      if (chosen === undefined) return undefined
      skill.last = chosen.worker.id
      if (!isRotating(strategy)) return chosen
      // Each that is left out is so once less, so that there is an end.
      if (hasBeenGiven(skill, chosen.worker.id)) continue
      this.#onRotated(call.type, chosen.worker.id)
      return chosen
    }
  }

  /**
   * Another instance chose this worker in rotation. The ring here leaves it out the next time that it comes to it, so that choices
   * go round over all instances together. An instance that has given none yet begins behind it.
   */
  rotatedElsewhere(type: string, workerId: string): void {
    const skill = this.#skills.get(type)
    const entry = this.#entries.get(workerId)
    if (skill === undefined || entry === undefined || !skill.workers.has(entry)) return
    if (skill.last === undefined) skill.last = workerId
    else give(skill, workerId)
  }

  #compete(skill: Skill, strategy: Strategy, call: TaskCall, exclude: readonly string[]): Candidate | undefined {
    const contest = this.#contest
    contest.begin(strategy, questionOf(call, skill.last))
    for (const { entry } of skill.open) {
      // The cheap question first: few ever lead, so that requirements are seldom looked at.
      if (!contest.wouldLead(entry)) continue
      if (!exclude.includes(entry.worker.id) && fits(call, entry.worker)) contest.lead(entry)
    }
    return contest.end()
  }

  /**
   * Of the workers that failed a task, those that its next try shall avoid: all of them while
   * another one here could take it, be it busy now; none once they are the only ones left.
   */
  exclusion(demand: Demand, failedWorkers: readonly string[]): readonly string[] {
    if (failedWorkers.length === 0) return failedWorkers
    for (const { worker } of this.#skills.get(demand.type)?.workers ?? []) {
      if (!failedWorkers.includes(worker.id) && isStaying(worker.status) && fits(demand, worker)) return failedWorkers
    }
    return []
  }

  #list(entry: Entry): void {
    const seats: Seat[] = []
    for (const name of startable(entry.worker)) {
      const skill = this.#skills.get(name) ?? newSkill(name)
      this.#skills.set(name, skill)
      skill.workers.add(entry)
      seats.push({ entry, skill, at: -1 })
    }
    entry.seats = seats
  }

  #unlist(entry: Entry): void {
    this.#setOpen(entry, false)
    for (const { skill } of entry.seats) {
      skill.workers.delete(entry)
      skill.given.delete(entry.worker.id)
      if (skill.workers.size === 0) this.#skills.delete(skill.name)
    }
    entry.seats = []
  }

  #settle(entry: Entry): void {
    this.#setOpen(entry, isAccepting(entry.worker) && hasFreeSlot(entry))
    if (!entry.isOpen) return
    for (const { skill } of entry.seats) for (const ordering of skill.orderings.values()) ordering.put(entry)
  }

  #setOpen(entry: Entry, isOpen: boolean): void {
    if (isOpen === entry.isOpen) return
    entry.isOpen = isOpen
    for (const seat of entry.seats) {
      if (isOpen) sit(seat)
      else rise(seat)
    }
  }
}

function sit(seat: Seat): void {
  seat.at = seat.skill.open.push(seat) - 1
}

/** The last one takes the free place, so that no other one has to move. */
function rise(seat: Seat): void {
  const { open } = seat.skill
  const moved = lastOf(open)
  open[seat.at] = moved
  moved.at = seat.at
  open.pop()
  for (const ordering of seat.skill.orderings.values()) ordering.remove(seat.entry.worker.id)
}

function newSkill(name: string): Skill {
  return {
    name,
    workers: new Set(),
    open: [],
    last: undefined,
    given: new Map(),
    orderings: new Map(),
    asked: new Map(),
  }
}

/** A whole lap that was given elsewhere changes nothing here. */
function give({ given, workers }: Skill, id: string): void {
  given.set(id, Math.min((given.get(id) ?? 0) + 1, GIVEN_MAX))
  if (given.size === workers.size) for (const [one, times] of given) leave(given, one, times - 1)
}

/** Whether another instance made this choice already; then it is used up. */
function hasBeenGiven({ given }: Skill, id: string): boolean {
  const times = given.get(id)
  if (times === undefined) return false
  leave(given, id, times - 1)
  return true
}

function leave(given: Map<string, number>, id: string, times: number): void {
  if (times === 0) given.delete(id)
  else given.set(id, times)
}

/** The kept order for such tasks, if they come often enough for one. */
function orderingFor(skill: Skill, strategy: Strategy, call: TaskCall): Ordering | undefined {
  if (!isKeepable(strategy)) return undefined
  const question = questionOf(call, undefined)
  const { orderings, asked } = skill
  const key = JSON.stringify([strategy.name, question.model, call.requirements, call.maxCost])
  let ordering = orderings.get(key)
  if (ordering === undefined) {
    const times = (asked.get(key) ?? 0) + 1
    if (asked.size >= ASKED_MAX) asked.clear()
    asked.set(key, times)
    if (times < ASKED_MIN) return undefined
    asked.delete(key)
    ordering = new Ordering(strategy, question, call)
    for (const { entry } of skill.open) ordering.put(entry)
    for (const oldest of orderings.keys()) {
      if (orderings.size < ORDERINGS_MAX) break
      orderings.delete(oldest)
    }
  } else {
    orderings.delete(key)
  }
  orderings.set(key, ordering)
  return ordering
}

/** Of a list that is known to hold something: here the seat that is being given up. */
function lastOf<T>(list: readonly T[]): T {
  return list.at(-1) as T
}

function startable({ skills, availableSkills }: WorkerRecord): ReadonlySet<string> {
  if (availableSkills === undefined) return new Set(skills)
  const available = new Set(availableSkills)
  return new Set(skills.filter((skill) => available.has(skill)))
}

/** Heartbeats come every few seconds from every worker and seldom change what it can do. */
function hasSameSkills(a: WorkerRecord, b: WorkerRecord): boolean {
  return isSameList(a.skills, b.skills) && isSameList(a.availableSkills, b.availableSkills)
}

function isSameList(a: readonly string[] | undefined, b: readonly string[] | undefined): boolean {
  if (a === b) return true
  return a !== undefined && b !== undefined && a.length === b.length && a.every((one, index) => one === b[index])
}
