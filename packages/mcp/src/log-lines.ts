import type { ServerContext } from '@modelcontextprotocol/server'
import { writeJson } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'
import { ApiError, pathTo } from './api.ts'
import type { Era, LowServer } from './session.ts'
import { SESSION_HEADER } from './greeting.ts'
import { objectOf, rowsOf, textOf } from './tool.ts'
import type { ToolContext } from './tool.ts'

/* What handlers and workers write about a job, told to the client whose call waits for it. */

/** From the least to the most important one. */
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
type LogLevel = (typeof LEVELS)[number]

/** Where a request of 2026-07-28 says which lines it wants. */
const LOG_LEVEL_META_KEY = 'io.modelcontextprotocol/logLevel'

/** Sessions whose level is remembered; one that was not heard of for long is the first to be forgotten. */
const SESSIONS_MAX = 1_000

/**
 * The levels that clients of 2025-11-25 have asked for, by session. Each instance knows what it was told itself: on another one a
 * client gets no lines until it asks there. Since 2026-07-28 every request says it.
 */
export class LogLevels {
  readonly #levels = new Map<string, LogLevel>()

  set(session: string, level: LogLevel): void {
    this.#levels.delete(session)
    this.#levels.set(session, level)
    const [oldest] = this.#levels.keys()
    if (oldest !== undefined && this.#levels.size > SESSIONS_MAX) this.#levels.delete(oldest)
  }

  get(session: string): LogLevel | undefined {
    return this.#levels.get(session)
  }
}

export function serveLogging(server: LowServer, levels: LogLevels, sessionOf: (ctx: ServerContext) => string): void {
  server.setRequestHandler('logging/setLevel', ({ params: { level } }, ctx) => {
    levels.set(sessionOf(ctx), level)
    return {}
  })
}

/** Tells one line to the client of a request. */
export type TellLine = (level: LogLevel, data: Json) => void

/** How lines are told; nothing if the client has not asked for any. */
export function tellingOf(ctx: ServerContext, era: Era, levels: LogLevels, session: string): TellLine | undefined {
  const wanted = era === 'modern' ? levelIn(ctx) : levels.get(session)
  if (wanted === undefined) return undefined
  return (level, data) => {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(wanted)) return
    // The caller may be gone: then there is nothing to tell.
    const params = { level, data, logger: 'job' }
    ctx.mcpReq.notify({ method: 'notifications/message', params }).catch(() => undefined)
  }
}

export function sessionKey(ctx: ServerContext, callerId: string): string {
  return `${callerId}\0${ctx.http?.req?.headers.get(SESSION_HEADER) ?? ''}`
}

/** Boundary: what a request says about itself is JSON, and the names of its envelope are not in its type. */
function levelIn(ctx: ServerContext): LogLevel | undefined {
  const envelope = ctx.mcpReq.envelope as Readonly<Record<string, unknown>> | undefined
  const said = envelope?.[LOG_LEVEL_META_KEY]
  return LEVELS.find((level) => level === said)
}

/** The lines of one job, each told once. */
export class JobLines {
  readonly #context: ToolContext
  readonly #jobId: string
  #last: string | undefined

  constructor(context: ToolContext, jobId: string) {
    this.#context = context
    this.#jobId = jobId
  }

  /** Tells what was written since the last time. */
  async tell(): Promise<void> {
    const { tellLine, api, signal } = this.#context
    if (tellLine === undefined) return
    const rows = await this.#rows(api, signal)
    const texts = rows.map((row) => writeJson(row))
    const from = this.#last === undefined ? 0 : texts.lastIndexOf(this.#last) + 1
    for (const row of rows.slice(from)) tellLine(levelOf(row), lineOf(row, this.#jobId))
    this.#last = texts.at(-1) ?? this.#last
  }

  /** Who may not read jobs gets no lines. */
  async #rows(api: ToolContext['api'], signal: AbortSignal): Promise<readonly JsonObject[]> {
    try {
      return rowsOf((await api.call({ method: 'GET', path: pathTo('jobs', this.#jobId, 'log'), signal })).body)
    } catch (error) {
      if (error instanceof ApiError) return []
      throw error
    }
  }
}

function levelOf({ level }: JsonObject): LogLevel {
  if (level === 'warn') return 'warning'
  return LEVELS.find((one) => one === level) ?? 'info'
}

function lineOf(row: JsonObject, jobId: string): JsonObject {
  const fields = objectOf(row['fields'] ?? {})
  return { message: textOf(row['message']), job_id: jobId, ...(Object.keys(fields).length === 0 ? {} : { fields }) }
}
