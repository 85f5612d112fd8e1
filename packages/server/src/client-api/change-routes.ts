import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { LIMITS } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { admit, callerOf } from '../http/access.ts'
import type { Caller, Gate } from '../http/access.ts'
import type { OpenWaits } from '../http/connection.ts'
import { readQuery, route } from '../http/route.ts'
import type { ChangeStream, ChangeStreams } from './change-streams.ts'
import { ownerFilter } from './job-access.ts'

export interface ChangeRoutesOptions {
  readonly changeStreams: ChangeStreams
  readonly gate: Gate
  readonly waits: OpenWaits
  /** Refuses a session that its owner has ended. */
  readonly mustNotBeEnded: (headers: IncomingHttpHeaders) => Promise<void>
}

const NEEDS = { role: 'viewer', scope: 'jobs:read' } as const

const CHANGES = route({
  access: NEEDS.role,
  scope: NEEDS.scope,
  tag: 'jobs',
  id: 'streamChanges',
  summary: 'What changes, as it changes',
  description: `Server-sent events. They are hints: read again what you show.

\`ready\`: the stream has begun; \`resumed\` says whether it goes on where \`Last-Event-ID\` ended. \`change\`: the newest change of each job that the caller may see (\`jobs\`), whether \`more\` jobs changed than are named, and whether \`workers\` did. \`reset\`: some changes were missed, because the reader was too slow or its \`Last-Event-ID\` is not known here; read everything again.

Changes of all instances are told, those of 200 ms together (of longer where more than 100 streams are open), up to ${LIMITS.changeMessageBytesMax / 1_024} kB in a message. A comment comes every ten seconds. The stream ends with the token or the session that it was opened with, and when the server stops.`,
  query: schemas.changesQuery,
  replies: { 200: { description: 'The stream.', types: ['text/event-stream'] } },
  refusals: ['INVALID_REQUEST', 'OVERLOADED'],
})

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  // nginx would hold the events back until its buffer is full.
  'x-accel-buffering': 'no',
}

export function registerChangeRoutes(app: FastifyInstance, options: ChangeRoutesOptions): void {
  const { changeStreams, waits } = options
  app.get('/changes', CHANGES, (request, reply) => {
    const caller = callerOf(request)
    const { wait: seconds } = readQuery(schemas.changesQuery, request.query)
    const { 'last-event-id': lastId } = request.headers
    const wait = waits.begin(reply)
    let stream: ChangeStream
    try {
      stream = changeStreams.open({
        clientId: caller.client.id,
        owner: ownerFilter(caller, undefined).owner,
        lastId: typeof lastId === 'string' && lastId !== '' ? lastId : undefined,
        isAdmitted: () => isAdmitted(options, request, caller),
      })
    } catch (error) {
      wait.end()
      throw error
    }
    const end = (): void => stream.finish()
    if (wait.signal.aborted) end()
    else wait.signal.addEventListener('abort', end, { once: true })
    const timer = seconds === undefined ? undefined : setTimeout(end, seconds * 1_000)
    stream.body.once('close', () => {
      clearTimeout(timer)
      wait.signal.removeEventListener('abort', end)
      wait.end()
    })
    return reply.headers(HEADERS).send(stream.body)
  })
}

/** The caller is looked at again: the session may have ended, the token may be gone, its role may be another. */
async function isAdmitted(
  { gate, mustNotBeEnded }: ChangeRoutesOptions,
  request: FastifyRequest,
  before: Caller,
): Promise<boolean> {
  await mustNotBeEnded(request.headers)
  const { client, role } = await admit(gate, request, NEEDS)
  return client.id === before.client.id && role === before.role
}
