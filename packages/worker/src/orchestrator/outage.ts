import { messageOf, type Log } from '../runtime/log.ts'
import { isUnreached, TransportError } from '../transport/transport.ts'

interface OutageOptions {
  /** The orchestrator, for the log. */
  readonly name: string
  readonly log: Log
  readonly now: () => number
}

type Trouble = 'refused' | 'unreached' | 'other'

/** What has not changed is said again this often. A wrong token does not mend itself: its line must be among the newest. */
const AGAIN_MS: Readonly<Record<Trouble, number>> = { refused: 60_000, unreached: 300_000, other: 300_000 }

/**
 * What the log says of an orchestrator that cannot be worked with: once what is wrong and what to do about it, then seldom, and
 * once that it is over. A worker tries again for as long as it runs, several times a second at first; a line for each try
 * would hide the one that matters.
 */
export class Outage {
  readonly #options: OutageOptions
  #trouble: Trouble | undefined
  #since = 0
  #saidAt = 0

  constructor(options: OutageOptions) {
    this.#options = options
  }

  /** Something could not be done; `what` is a sentence that says what. */
  failed(what: string, error: unknown, fields: Readonly<Record<string, unknown>> = {}): void {
    const { log, name, now } = this.#options
    const trouble = troubleOf(error)
    const at = now()
    const said = { orchestrator: name, error: messageOf(error), ...fields }
    if (this.#trouble === undefined) this.#since = at
    if (this.#trouble === trouble && at - this.#saidAt < AGAIN_MS[trouble]) {
      log.debug(what, said)
      return
    }
    this.#trouble = trouble
    this.#saidAt = at
    if (trouble === 'refused') log.error(`${what} ${REFUSED}`, said)
    else log.warn(`${what} ${trouble === 'unreached' ? UNREACHED : 'It is tried again.'}`, said)
  }

  /** The orchestrator has answered. */
  over(): void {
    if (this.#trouble === undefined) return
    this.#trouble = undefined
    const { log, name, now } = this.#options
    const after = Math.round((now() - this.#since) / 1_000)
    log.info('Connected to the orchestrator again.', { orchestrator: name, after_s: after })
  }
}

const UNREACHED = 'No orchestrator answers at this address. The worker keeps trying; ORCHESTRATOR_URL sets the address.'
const REFUSED =
  'The orchestrator does not let this worker in. Set WORKER_TOKEN to the token that its workers share, or ' +
  'WORKER_INDIVIDUAL_TOKEN to the one of this worker in workers.toml, and restart the worker. Until then it keeps trying.'

function troubleOf(error: unknown): Trouble {
  if (isUnreached(error)) return 'unreached'
  const status = error instanceof TransportError ? error.status : undefined
  return status === 401 || status === 403 ? 'refused' : 'other'
}
