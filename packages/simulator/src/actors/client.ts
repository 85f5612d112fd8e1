import { isEnded } from '@impresario/core'
import type { JobRequest } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { isImpresarioError } from '@impresario/protocol'
import type { Chance } from '../chance.ts'
import type { Setting } from '../fleet.ts'
import type { Network } from '../network.ts'

/** A job that a client will request. */
export interface Order {
  readonly key: string
  readonly request: JobRequest
  /** When, counted from the start. */
  readonly atMs: number
  /** Requests it twice at the same time. */
  readonly isTwin: boolean
  /** Uses the batched create. */
  readonly isBatched: boolean
  /** Waits for its result. */
  readonly waits: boolean
  /** Cancels it after this long. */
  readonly cancelAfterMs: number | undefined
}

export interface ClientParts extends Setting {
  readonly network: Network
  /** Called once a client has its job and has nothing more to send. */
  readonly onSettled: (order: Order) => void
}

/** A client: retries until it gets a reply, always with the same key, and may wait for the end or cancel. */
export class ClientActor {
  readonly #parts: ClientParts
  readonly #order: Order
  readonly #chance: Chance

  constructor(parts: ClientParts, order: Order) {
    this.#parts = parts
    this.#order = order
    this.#chance = parts.world.chance(`client ${order.key}`)
  }

  start(): void {
    this.#parts.world.after(this.#order.atMs, () => {
      void this.#live()
    })
  }

  async #live(): Promise<void> {
    const { isTwin, waits, cancelAfterMs } = this.#order
    const creating = Promise.all(isTwin ? [this.#create(), this.#create()] : [this.#create()])
    const first = creating.then(([id = '']) => id)
    const writing = this.#order.request.blueprint === 'letters' ? this.#write(first) : undefined
    const [jobId] = await creating
    if (jobId === undefined) return
    if (waits) void this.#follow(jobId)
    if (cancelAfterMs !== undefined) {
      await this.#parts.world.sleep(cancelAfterMs)
      await this.#cancel(jobId)
    }
    await writing
    this.#parts.onSettled(this.#order)
  }

  /** Sends what its job waits for. The one by key may come before the job, and none may be lost or count twice. */
  async #write(jobId: Promise<string>): Promise<void> {
    const { world, network, tally } = this.#parts
    const { key, request } = this.#order
    const send = async (
      count: number,
      run: (engine: Engine) => Promise<{ readonly isNew: boolean }>,
    ): Promise<void> => {
      await world.sleep(this.#chance.between(0, 3_000))
      const { isNew } = await this.#insist(() => network.call(this.#chance, run), isRefused)
      if (!isNew) tally.sometimes('event repeated')
      // Some senders say it again, to be sure.
      if (count > 0 && this.#chance.happens(0.3)) await send(count - 1, run)
    }
    const eventOf = (number: number, topic: string): Parameters<Engine['sendEvent']>[1] => ({
      topic,
      payload: { number },
      eventId: `${key} ${number}`,
    })
    const isEarly = this.#chance.happens(0.5)
    const publish = (engine: Engine): Promise<{ readonly isNew: boolean }> =>
      engine.publishEvent(request.client.id, key, eventOf(3, 'pong'))
    if (isEarly) {
      tally.sometimes('event sent before its job')
      await send(1, publish)
    }
    const id = await jobId
    for (const number of [1, 2]) await send(1, (engine) => engine.sendEvent(id, eventOf(number, 'ping')))
    if (!isEarly) await send(1, publish)
  }

  async #create(): Promise<string> {
    const { chronicle, tally } = this.#parts
    const { key } = this.#order
    return this.#insist(async () => {
      chronicle.add({ type: 'attempted', key })
      const { jobId, isNew } = await this.#ask()
      if (!isNew) tally.sometimes('create answered from its key')
      chronicle.add({ type: 'acknowledged', key, jobId })
      chronicle.add({ type: 'told', jobId, version: 1 })
      chronicle.note(key, `has ${jobId}`)
      return jobId
    })
  }

  async #ask(): Promise<{ readonly jobId: string; readonly isNew: boolean }> {
    const { network } = this.#parts
    const { key: idempotencyKey, request, isBatched } = this.#order
    if (!isBatched) return network.call(this.#chance, (engine) => engine.createJob({ ...request, idempotencyKey }))
    const [created] = await network.call(this.#chance, (engine) => engine.createJobs([{ ...request, idempotencyKey }]))
    if (created === undefined || 'error' in created) throw new Error('The batch was refused.')
    return { jobId: created.jobId, isNew: true }
  }

  async #insist<T>(ask: () => Promise<T>, isFinal: (error: unknown) => T | undefined = () => undefined): Promise<T> {
    for (;;) {
      try {
        return await ask()
      } catch (error) {
        const answer = isFinal(error)
        if (answer !== undefined) return answer
        await this.#parts.world.sleep(this.#chance.between(100, 2_000))
      }
    }
  }

  async #follow(jobId: string): Promise<void> {
    const { network, chronicle } = this.#parts
    let afterVersion: number | undefined
    for (;;) {
      const options = { waitMs: 8_000, afterVersion }
      const stored = await this.#insist(() =>
        network.call(this.#chance, (engine, signal) => engine.waitForJob(jobId, { ...options, signal }), {
          isAbortable: true,
        }),
      )
      // If an acknowledged job is missing, the checkers report it.
      if (stored === undefined) return
      chronicle.add({ type: 'told', jobId, version: stored.version })
      if (isEnded(stored.value)) return
      // A client that is told that its job is quarantined waits for a person's decision.
      afterVersion = stored.value.status === 'quarantined' ? stored.version : undefined
    }
  }

  async #cancel(jobId: string): Promise<void> {
    const { network, chronicle } = this.#parts
    const applied = await this.#insist(() =>
      network.call(this.#chance, (engine) => engine.cancelJob(jobId, 'the client', 'It is no longer needed.')),
    )
    if (applied.type === 'applied') chronicle.add({ type: 'told', jobId, version: applied.version })
    chronicle.note(this.#order.key, `cancelled ${jobId}: ${applied.type}`)
  }
}

/** Asking again would not help: the job has ended, as cancelled ones do. */
function isRefused(error: unknown): { readonly isNew: boolean } | undefined {
  return isImpresarioError(error, 'NOT_WAITING') ? { isNew: true } : undefined
}
