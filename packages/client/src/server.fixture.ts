import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { CreateJobRequest, JobBody } from '@impresario/protocol'

interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: unknown
}

interface Poll {
  readonly id: string
  readonly version: number
  readonly untilEnd: boolean
  readonly waitMs: number
  readonly response: ServerResponse
}

/** A small server of the client API for tests: keeps jobs in memory and changes them when a test says so. */
export class TestServer {
  readonly seen: SeenRequest[] = []
  readonly jobs = new Map<string, JobBody>()
  readonly #keys = new Map<string, string>()
  #polls: Poll[] = []
  #server: Server | undefined
  readonly #watchers: (() => void)[] = []
  readonly #held: (() => void)[] = []
  /** Creates are done but not answered: the connection breaks. Counts down. */
  creationsToCut = 0
  /** Answers to creates wait for `release`. */
  holdCreations = false
  url = ''

  async listen(): Promise<this> {
    const server = createServer((request, response) => {
      void this.#answer(request, response)
    })
    this.#server = server
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    const address = server.address()
    this.url = `http://127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}`
    return this
  }

  async close(): Promise<void> {
    const server = this.#server
    if (server === undefined) return
    await new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }

  release(): void {
    this.holdCreations = false
    for (const answer of this.#held.splice(0)) answer()
  }

  change(id: string, fields: Partial<JobBody>): void {
    const job = this.jobs.get(id)
    if (job === undefined) throw new Error(`no job ${id}`)
    this.jobs.set(id, { ...job, ...fields, version: job.version + 1 })
    const polls = this.#polls
    this.#polls = []
    for (const poll of polls) this.#read(poll)
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#watchers.push(resolve)
      })
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(Buffer.from(chunk as Uint8Array))
    const text = Buffer.concat(chunks).toString('utf8')
    const url = new URL(request.url ?? '/', this.url)
    const body: unknown = text === '' ? undefined : JSON.parse(text)
    const path = url.pathname.replace('/api/v1', '')
    const seen = { method: request.method ?? '', path, query: url.searchParams, headers: request.headers, body }
    this.seen.push(seen)
    this.#route(seen, response)
    for (const wake of this.#watchers.splice(0)) wake()
  }

  #route(request: SeenRequest, response: ServerResponse): void {
    const { method, path, query } = request
    const [, area, id, verb] = path.split('/')
    if (method === 'POST' && path === '/jobs') return this.#created(response, 202, this.#create(request.body))
    if (path === '/jobs/batch') {
      const { jobs } = request.body as { readonly jobs: readonly unknown[] }
      return this.#created(response, 200, { results: jobs.map((job) => this.#create(job)) })
    }
    if (path === '/jobs') return this.#list(query, response)
    if (verb === 'cancel') return send(response, 200, { status: 'cancellation_request_accepted' })
    if (verb === 'graph') return draw(response, `digraph ${id} as ${query.get('format')}`)
    if (verb === 'explain') return send(response, 200, { waits_for: 'a worker' })
    if (area === '_public') return send(response, 200, { status: 'approval_received' })
    if (path === '/workers') return send(response, 200, [{ worker_id: 'w1' }])
    if (path === '/blueprints') return send(response, 200, [{ name: 'b', version: 1 }])
    const waits = Number(query.get('wait') ?? 0) > 0
    const version = waits ? Number(query.get('version') ?? -1) : -1
    this.#read({
      id: id ?? '',
      version,
      untilEnd: waits && query.get('until') === 'end',
      waitMs: Number(query.get('wait') ?? 0) * 1_000,
      response,
    })
  }

  #create(body: unknown): object {
    const { blueprint, idempotency_key, job_id, initial_data } = body as CreateJobRequest
    // The names of its own are easier to read in tests; that a repeated id makes no second job is what counts.
    const key = idempotency_key ?? job_id
    if (blueprint === 'missing') return { error: 'No such blueprint.', code: 'BLUEPRINT_NOT_FOUND' }
    const old = key === undefined || key === null ? undefined : this.#keys.get(key)
    if (old !== undefined) return { status: 'accepted', job_id: old }
    const id = `job-${this.jobs.size + 1}`
    this.jobs.set(id, jobBody(id, blueprint, initial_data ?? {}))
    if (key !== undefined && key !== null) this.#keys.set(key, id)
    return { status: 'accepted', job_id: id }
  }

  #created(response: ServerResponse, status: number, reply: object): void {
    if (this.creationsToCut > 0) {
      this.creationsToCut -= 1
      response.destroy()
      return
    }
    const answer = (): void => send(response, 'error' in reply ? 404 : status, reply)
    if (this.holdCreations) this.#held.push(answer)
    else answer()
  }

  #list(query: URLSearchParams, response: ServerResponse): void {
    const all = [...this.jobs.values()].filter((job) =>
      (query.get('status') ?? job.status).split(',').includes(job.status),
    )
    const from = Number(query.get('cursor') ?? 0)
    const to = from + Number(query.get('limit') ?? 50)
    if (to < all.length) response.setHeader('x-next-cursor', String(to))
    send(response, 200, all.slice(from, to))
  }

  #read(poll: Poll): void {
    const job = this.jobs.get(poll.id)
    if (job === undefined) return send(poll.response, 404, { error: 'Job not found', code: 'JOB_NOT_FOUND' })
    const ended = ['finished', 'failed', 'cancelled', 'error', 'quarantined'].includes(job.status)
    if (ended || (!poll.untilEnd && job.version > poll.version)) return send(poll.response, 200, job)
    this.#polls.push(poll)
    if (poll.waitMs > 0) setTimeout(() => this.#giveUp(poll), poll.waitMs).unref()
  }

  /** As the real server does when the time that was asked for is up: the job as it is. */
  #giveUp(poll: Poll): void {
    const job = this.jobs.get(poll.id)
    const at = this.#polls.indexOf(poll)
    if (at === -1 || job === undefined) return
    this.#polls.splice(at, 1)
    send(poll.response, 200, job)
  }
}

function jobBody(id: string, blueprint: string, initialData: JobBody['initial_data']): JobBody {
  return {
    id,
    job_id: id,
    blueprint_name: blueprint,
    blueprint_version: 1,
    status: 'running',
    current_state: 'start',
    initial_data: initialData,
    state_history: {},
    created_at: 0,
    updated_at: 0,
    version: 1,
    trail: [],
  }
}

function draw(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-type': 'text/vnd.graphviz' }).end(text)
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
