import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Proof, WorkerAuth } from '../auth/worker-auth.ts'
import { hintedId } from '../auth/worker-identity.ts'
import type { Admission } from '../limits/admission.ts'
import type { Rates } from '../limits/rate-limits.ts'
import type { Verdict } from '../limits/rate-limiter.ts'
import { isEmptyBody } from '../worker-protocol/wire-worker.ts'
import { ShortCall } from './short-call.ts'
import type { ShortCallParts } from './short-call.ts'
import { askedIn, drop, HEARTBEAT, isForwarded, peek } from './short-request.ts'
import type { Asked } from './short-request.ts'

export interface ShortWayOptions extends Omit<ShortCallParts, 'server'> {
  readonly auth: WorkerAuth
  /** Absent where nothing is limited. */
  readonly rates: Rates | undefined
  readonly admission: Pick<Admission, 'hasRoom'>
  /** The word of some proxies about callers is taken: then these are read in the general way. */
  readonly trustsProxies: boolean
}

/** A request that is being looked at. */
interface Candidate {
  readonly asked: Asked
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly since: number
}

/**
 * The short way for what idle workers send all the time: polls and heartbeats. Ten thousand of them send a thousand requests a
 * second, and each of their polls hangs for half a minute.
 *
 * A request takes this way only if it is plain and good: its path, headers, token and body are as usual, and no limit is
 * reached. Every other one goes on to Fastify as it came, with nothing counted and its body unread, and is answered or refused there.
 * So refusals are written in one place only; on good answers both ways must agree, and a test compares them.
 */
export function openShortWay(app: FastifyInstance, options: ShortWayOptions): void {
  // When all others listen: those for whom a request is not meant must not hear of it.
  app.addHook('onReady', (done) => {
    new ShortWay(app.server, options).open()
    done()
  })
}

class ShortWay {
  readonly #server: Server
  readonly #options: ShortWayOptions
  readonly #parts: ShortCallParts
  #others: ReturnType<Server['rawListeners']> = []

  constructor(server: Server, options: ShortWayOptions) {
    this.#server = server
    this.#options = options
    this.#parts = { ...options, server }
  }

  open(): void {
    const server = this.#server
    this.#others = server.rawListeners('request')
    server.removeAllListeners('request')
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const asked = askedIn(request)
      if (asked === undefined || (this.#options.trustsProxies && isForwarded(request.headers))) {
        this.#goOn(request, response)
      } else this.#recognise({ asked, request, response, since: performance.now() })
    })
  }

  /** To the others, as if nobody had looked at it. */
  #goOn(request: IncomingMessage, response: ServerResponse): void {
    for (const listener of this.#others) Reflect.apply(listener, this.#server, [request, response])
  }

  /** Before the body is read. */
  #recognise(candidate: Candidate): void {
    const { request, response } = candidate
    try {
      const proof = this.#options.auth.recognise(request.headers, request.socket)
      if (proof instanceof Promise) {
        proof.then(
          (found) => this.#judge(candidate, found),
          () => this.#goOn(request, response),
        )
        return
      }
      // By then everything that came together with the head is there.
      process.nextTick(() => this.#judge(candidate, proof))
    } catch {
      this.#goOn(request, response)
    }
  }

  #judge(candidate: Candidate, proof: Proof): void {
    const { asked, request, response, since } = candidate
    const { rates } = this.#options
    const peeked = peek(request, asked.route)
    if (peeked === undefined || !this.#isGood(candidate, proof, peeked.body)) {
      this.#goOn(request, response)
      return
    }
    const call = new ShortCall(this.#parts, { ...asked, request, response, since, proof })
    if (!call.enter()) {
      this.#goOn(request, response)
      return
    }
    // Who is refused has not been counted, so that it can be said in the general way.
    const goOn = (): void => {
      call.leave()
      this.#goOn(request, response)
    }
    const go = (verdict: Verdict | undefined): void => {
      if (verdict?.isAllowed === false) {
        goOn()
        return
      }
      drop(request)
      call.begin(asked.query, peeked.body)
    }
    const verdict = rates?.judge(call)
    if (verdict instanceof Promise) verdict.then(go, goOn)
    else go(verdict)
  }

  /** Whether the worker is the one that it says, need not sign what it says, and there is room for its words. */
  #isGood({ asked, request }: Candidate, proof: Proof, body: unknown): boolean {
    const { auth, admission, waits } = this.#options
    const { route, workerId } = asked
    if (route !== HEARTBEAT && waits.isFull) return false
    try {
      auth.identify(proof, hintedId({ params: { workerId }, headers: request.headers, body }))
    } catch {
      return false
    }
    const isSigned = route.config.signed !== undefined && auth.signingOf(workerId) !== undefined && !isEmptyBody(body)
    return !isSigned && admission.hasRoom(request.readableLength)
  }
}
