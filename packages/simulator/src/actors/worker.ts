import { newWorkerRecord, parseDeliveryId } from '@impresario/core'
import type { NewWorker } from '@impresario/core'
import type { Delivery, Engine, Handout, Receipt, Report } from '@impresario/engine'
import { isImpresarioError } from '@impresario/protocol'
import type { JsonObject, TaskError } from '@impresario/protocol'
import type { Bug, TakeResults } from '../bugs/bug.ts'
import type { Chance } from '../chance.ts'
import type { Setting } from '../fleet.ts'
import type { CallOptions, Network } from '../network.ts'

export interface WorkerTraits {
  readonly worker: NewWorker
  readonly concurrencyMax: number
  /** Collects results and sends them together. */
  readonly isBatching: boolean
  /** Reports its tasks in its heartbeats. */
  readonly namesTasks: boolean
  /** Lives and dies with the engine's process. */
  readonly isLocal: boolean
  readonly heartbeatMs: number
  readonly pollMs: number
}

export interface WorkerParts extends Setting {
  readonly network: Network
  readonly bug: Bug | undefined
  readonly traits: WorkerTraits
}

/** From the start of the worker's program to its end. */
interface Life {
  isAlive: boolean
  frozenUntil: number
  readonly running: Map<string, { isCancelled: boolean }>
  /** Finished here, and not yet acknowledged: still reported in heartbeats. */
  readonly reported: Set<string>
  readonly outbox: Report[]
}

/** How often a worker sends a heartbeat at the moment when it sends a result. */
const CROSSING = 0.3

/**
 * A realistic worker: slow, forgetful, and it can die. It registers, sends heartbeats, polls, works and reports over
 * the lossy network. When it dies, another one starts under the same name.
 */
export class WorkerActor {
  readonly #parts: WorkerParts
  readonly #chance: Chance
  readonly #id: string
  #life: Life | undefined

  constructor(parts: WorkerParts) {
    this.#parts = parts
    this.#id = parts.traits.worker.id
    this.#chance = parts.world.chance(`worker ${this.#id}`)
  }

  get isLocal(): boolean {
    return this.#parts.traits.isLocal
  }

  /** The program ends at once, and the tasks that it held are lost. */
  die(): void {
    const life = this.#life
    if (life === undefined || !life.isAlive) return
    life.isAlive = false
    this.#note('dies')
    this.#parts.world.after(this.#chance.between(100, 8_000), () => this.start())
  }

  start(): void {
    const life: Life = { isAlive: true, frozenUntil: 0, running: new Map(), reported: new Set(), outbox: [] }
    this.#life = life
    void this.#live(life)
  }

  async #live(life: Life): Promise<void> {
    // Some assume that they are already registered, and are told that they are not.
    if (!this.#chance.happens(this.#parts.faults.unregistered)) await this.#register(life)
    void this.#beat(life)
    while (life.isAlive) {
      this.#sufferFaults(life)
      await this.#rest(life, 0)
      const room = this.#parts.traits.concurrencyMax - life.running.size
      if (room <= 0) await this.#rest(life, this.#chance.between(50, 400))
      else await this.#poll(life, room)
    }
  }

  #sufferFaults(life: Life): void {
    const { faults, tally, world } = this.#parts
    if (this.#chance.happens(faults.workerDeath)) {
      tally.sometimes('fault: worker died')
      this.die()
    } else if (this.#chance.happens(faults.workerFreeze)) {
      tally.sometimes('fault: worker froze')
      life.frozenUntil = world.now + this.#chance.between(5_000, 60_000)
    }
  }

  /** Time as the program experiences it: it stops while the program is frozen, and a dead program never wakes. */
  async #rest(life: Life, ms: number): Promise<void> {
    const { world } = this.#parts
    if (ms > 0) await world.sleep(ms)
    while (life.isAlive && life.frozenUntil > world.now) await world.sleep(life.frozenUntil - world.now)
    if (!life.isAlive) await new Promise(() => undefined)
  }

  async #call<T>(
    life: Life,
    run: (engine: Engine, signal: AbortSignal) => Promise<T>,
    options: CallOptions = {},
  ): Promise<T> {
    try {
      return await this.#parts.network.call(this.#chance, run, options)
    } finally {
      await this.#rest(life, 0)
    }
  }

  async #register(life: Life): Promise<void> {
    const { traits, world } = this.#parts
    for (;;) {
      try {
        await this.#call(life, (engine) => engine.desk.register(newWorkerRecord(traits.worker, world.now)))
        this.#note('registered')
        return
      } catch {
        await this.#rest(life, this.#chance.between(200, 2_000))
      }
    }
  }

  async #beat(life: Life): Promise<void> {
    for (;;) {
      await this.#rest(life, this.#parts.traits.heartbeatMs)
      await this.#beatOnce(life)
    }
  }

  async #beatOnce(life: Life): Promise<void> {
    const { traits } = this.#parts
    const status = life.running.size >= traits.concurrencyMax ? 'full' : 'idle'
    const current = traits.namesTasks ? [...life.running.keys(), ...life.reported] : undefined
    try {
      const { cancelled } = await this.#call(life, (engine) => engine.desk.heartbeat(this.#id, { status }, current))
      for (const id of cancelled) this.#stop(life, id)
    } catch (error) {
      await this.#recover(life, error)
    }
  }

  #stop(life: Life, id: string): void {
    const { chronicle, tally } = this.#parts
    const ref = parseDeliveryId(id)
    if (ref !== undefined) chronicle.add({ type: 'stopped', workerId: this.#id, ...ref })
    const task = life.running.get(id)
    if (task === undefined) return
    tally.sometimes('task cancelled by heartbeat')
    task.isCancelled = true
  }

  async #recover(life: Life, error: unknown): Promise<void> {
    if (!isImpresarioError(error, 'WORKER_NOT_FOUND')) {
      await this.#rest(life, this.#chance.between(100, 1_000))
      return
    }
    this.#parts.tally.sometimes('worker unknown and registered again')
    await this.#register(life)
  }

  async #poll(life: Life, room: number): Promise<void> {
    const { traits, faults, tally, world } = this.#parts
    const limit = traits.isBatching ? room : 1
    const hangUp = this.#chance.happens(faults.abortedPoll) ? new AbortController() : undefined
    if (hangUp !== undefined) {
      world.after(this.#chance.between(0, traits.pollMs), () => hangUp.abort('bored'))
      tally.sometimes('fault: poll aborted')
    }
    try {
      const { deliveries } = await this.#call(
        life,
        (engine, signal) =>
          pollOnce(engine, this.#id, { limit, waitMs: traits.pollMs, signal, isLocal: traits.isLocal }),
        { isAbortable: true, signal: hangUp?.signal },
      )
      for (const delivery of deliveries) void this.#work(life, delivery)
    } catch (error) {
      await this.#recover(life, error)
    }
  }

  async #work(life: Life, delivery: Delivery): Promise<void> {
    const { faults, tally, chronicle } = this.#parts
    const { params } = delivery.call
    const { taskId: id } = delivery
    const ref = parseDeliveryId(id)
    if (ref === undefined) throw new Error(`${id} is no delivery.`)
    const { isLocal } = this
    chronicle.add({ type: 'delivered', workerId: this.#id, isLocal, ...ref })
    this.#note(`got ${id}`)
    if (delivery.delivery <= Number(params['kills'] ?? 0)) {
      this.die()
      return
    }
    const task = { isCancelled: false }
    life.running.set(id, task)
    const isSlow = this.#chance.happens(faults.workerSlow)
    if (isSlow) tally.sometimes('fault: worker slow')
    await this.#rest(life, Number(params['ms'] ?? 0) + (isSlow ? this.#chance.between(5_000, 60_000) : 0))
    if (task.isCancelled && this.#chance.happens(0.5)) {
      life.running.delete(id)
      return
    }
    for (const name of saidIn(params)) await this.#say(life, id, name)
    life.running.delete(id)
    life.reported.add(id)
    // Many workers send a heartbeat whenever something changes: such a heartbeat can cross the result.
    if (this.#chance.happens(CROSSING)) void this.#beatOnce(life)
    await this.#hand(life, reportOf(delivery))
  }

  /** Sends it until it is acknowledged, and sometimes once more: each time under the same id. */
  async #say(life: Life, id: string, type: string): Promise<void> {
    const { faults, tally } = this.#parts
    const event = { type, payload: {}, eventId: `${id} ${type}` }
    for (let isHeard = false; !isHeard; isHeard = !this.#chance.happens(faults.repeatedResult)) {
      const receipt = await this.#insist(life, (engine) => engine.desk.event(this.#id, id, event))
      if (receipt.type === 'ignored' && receipt.reason === 'repeated_event') {
        tally.sometimes('event of a worker repeated')
      }
    }
  }

  async #insist<T>(life: Life, run: (engine: Engine) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await this.#call(life, run)
      } catch {
        await this.#rest(life, this.#chance.between(100, 2_000))
      }
    }
  }

  /** Sends a result, and sometimes sends it twice. Sometimes another worker sends it first. */
  async #hand(life: Life, report: Report): Promise<void> {
    const { faults, tally, traits } = this.#parts
    const isRepeated = this.#chance.happens(faults.repeatedResult)
    if (isRepeated && !traits.isLocal && this.#chance.happens(0.2)) {
      await this.#report(life, `${this.#id}-stranger`, [report], 1)
    }
    if (traits.isBatching) this.#postLater(life, report)
    else await this.#report(life, this.#id, [report], Infinity)
    if (!isRepeated) return
    tally.sometimes('fault: result repeated')
    void this.#rest(life, this.#chance.between(0, 40_000)).then(() => this.#report(life, this.#id, [report], 3))
  }

  /** Results that finish at about the same time are sent together. */
  #postLater(life: Life, report: Report): void {
    if (life.outbox.push(report) > 1) return
    void this.#rest(life, 200).then(() => this.#report(life, this.#id, life.outbox.splice(0), Infinity))
  }

  async #report(life: Life, workerId: string, reports: readonly Report[], triesMax: number): Promise<void> {
    for (let tries = 1; tries <= triesMax; tries += 1) {
      try {
        const receipts = await this.#call(life, (engine) => {
          const take: TakeResults = (arrived) => engine.desk.results(workerId, arrived)
          return (this.#parts.bug?.results?.(take) ?? take)(reports)
        })
        for (const [index, receipt] of receipts.entries()) this.#heard(workerId, reports[index], receipt)
        if (workerId === this.#id) for (const { taskId } of reports) life.reported.delete(taskId)
        return
      } catch {
        await this.#rest(life, this.#chance.between(100, 2_000))
      }
    }
  }

  #heard(workerId: string, report: Report | undefined, receipt: Receipt): void {
    const { chronicle, tally } = this.#parts
    const ref = report === undefined ? undefined : parseDeliveryId(report.taskId)
    if (ref === undefined) return
    if (receipt.type === 'accepted') {
      chronicle.add({ type: 'accepted', workerId, ...ref })
      return
    }
    if (receipt.type === 'refused') return
    if (receipt.reason === 'stale_task') tally.sometimes('stale ending ignored')
    if (receipt.reason === 'worker_mismatch') tally.sometimes('result for another worker refused')
    if (receipt.reason === 'job_ended' && receipt.job?.status === 'cancelled') {
      tally.sometimes('late result after cancel')
    }
  }

  #note(what: string): void {
    this.#parts.chronicle.note(this.#id, what)
  }
}

/** How a server handles a poll: tasks that cannot be delivered are handed back at once. */
async function pollOnce(engine: Engine, id: string, options: Parameters<Engine['desk']['poll']>[1]): Promise<Handout> {
  const handout = await engine.desk.poll(id, options)
  if (options.signal.aborted) await handout.giveBack()
  return handout
}

function saidIn({ says }: JsonObject): readonly string[] {
  return typeof says === 'string' ? says.split(' ') : []
}

function reportOf({ taskId, attempt, call }: Delivery): Report {
  const { params } = call
  if (params['permanent'] === true) return { taskId, status: 'failure', error: failure('PERMANENT_ERROR') }
  if (attempt <= Number(params['failTimes'] ?? 0)) {
    return { taskId, status: 'failure', error: failure('TRANSIENT_ERROR') }
  }
  return { taskId, status: 'success', data: { value: Number(params['value'] ?? 0) } }
}

function failure(code: TaskError['code']): TaskError {
  return { code, message: 'It did not work.' }
}
