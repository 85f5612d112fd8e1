import type { Json, JsonObject } from '@impresario/protocol'
import { isJsonObject, writeJson } from '@impresario/protocol'
import { BOUNDS } from './bounds.ts'
import { jobView } from './job-view.ts'
import { cutText, fitted, textOf } from './tool.ts'

/** What a call of a blueprint answers, in the shape of the protocol. */
export interface CallResult {
  readonly content: readonly JsonObject[]
  readonly structuredContent?: JsonObject
  readonly isError?: boolean
  readonly [field: string]: unknown
}

/** How an ended job is told to whoever called its blueprint as a tool. A failure of the work is an answer, no fault. */
export function resultOf(job: JsonObject): CallResult {
  const { job_id: id, status, result, error_message: message, error_code: code } = job
  const ended = { job_id: textOf(id), status: textOf(status) }
  if (status !== 'finished') {
    const reason = typeof message === 'string' ? message : `The job ended as ${textOf(status)}.`
    const said = typeof code === 'string' ? `${reason} (${code})` : reason
    return {
      content: [{ type: 'text', text: `${said} Job: ${textOf(id)}. Call get_job with include "explain" to see why.` }],
      structuredContent: fitted({
        ...ended,
        ...(result === undefined ? {} : { result }),
        error: { code: code ?? null, message: reason },
      }),
      isError: true,
    }
  }
  const blocks = contentIn(result)
  if (blocks !== undefined) return { content: blocks }
  return {
    content: [{ type: 'text', text: cutText(writeJson(result ?? null), BOUNDS.fetchBytesMax) }],
    structuredContent: fitted({ ...ended, result: result ?? null }),
  }
}

/** A job that goes on: the caller has to ask again. */
export function pendingOf(job: JsonObject, questions: readonly { readonly message: string }[] = []): CallResult {
  const view = fitted(jobView(job))
  const asked = questions.map(({ message }) => `It asks: ${message}`).join(' ')
  const text = `The job ${textOf(job['job_id'])} has not ended: ${textOf(job['status'])}. ${asked} ${textOf(view['next'])}`
  return { content: [{ type: 'text', text: text.replaceAll(/ +/g, ' ') }], structuredContent: view }
}

/** A blueprint may answer with content of its own, such as pictures: `{"content": [{"type": "image", …}]}`. */
function contentIn(result: Json | undefined): readonly JsonObject[] | undefined {
  if (!isJsonObject(result)) return undefined
  const { content } = result
  if (!Array.isArray(content) || content.length === 0) return undefined
  const blocks = content.filter(isJsonObject)
  return blocks.length === content.length && blocks.every(isBlock) ? blocks : undefined
}

function isBlock(block: JsonObject): boolean {
  const { type } = block
  const has = (...fields: readonly string[]): boolean => fields.every((field) => typeof block[field] === 'string')
  if (type === 'text') return has('text')
  if (type === 'image' || type === 'audio') return has('data', 'mimeType')
  if (type === 'resource_link') return has('uri', 'name')
  return type === 'resource' && isJsonObject(block['resource']) && typeof block['resource']['uri'] === 'string'
}
