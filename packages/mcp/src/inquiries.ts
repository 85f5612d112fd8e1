import { randomBytes } from 'node:crypto'
import type { Json, JsonObject } from '@impresario/protocol'
import { isJsonObject } from '@impresario/protocol'
import type { Api } from './api.ts'
import { ApiError, pathTo } from './api.ts'
import { isMessage } from './greeting.ts'
import { answer, questionsOf } from './question.ts'
import type { Question } from './question.ts'
import { sealed, unsealed } from './seal.ts'
import { objectOf, textOf } from './tool.ts'

/** Who answers: what was asked of one caller cannot be answered by another one. */
export interface Answerer {
  readonly callerId: string
  readonly api: Api
  readonly signal: AbortSignal
}

const PURPOSE = 'inquiry'

/**
 * Questions to clients of 2025-11-25: a request on the stream of their call, whose answer is a request of its own and may reach
 * any instance. The id of the question is sealed and names the job, so an instance that did not ask, or whose call has ended,
 * hands the answer to the job itself.
 *
 * open → answered | closed
 */
export class Inquiries {
  readonly #key: Uint8Array
  readonly #open = new Map<string, (result: JsonObject | undefined) => void>()

  constructor(key: Uint8Array) {
    this.#key = key
  }

  /** Resolves with the result of the client; with `undefined` if it reports an error or the signal aborts first. */
  open(callerId: string, question: Question | undefined, signal: AbortSignal): Inquiry {
    const about = question === undefined ? {} : { job: question.jobId, question: question.key }
    const id = sealed({ ...about, nonce: randomBytes(12).toString('base64url') }, this.#key, `${PURPOSE}\0${callerId}`)
    const heard = new Promise<JsonObject | undefined>((resolve) => {
      const end = (result: JsonObject | undefined): void => {
        signal.removeEventListener('abort', cut)
        this.#open.delete(id)
        resolve(result)
      }
      const cut = (): void => end(undefined)
      this.#open.set(id, end)
      if (signal.aborted) cut()
      else signal.addEventListener('abort', cut, { once: true })
    })
    return { id, heard }
  }

  /** Takes an answer of a client. Returns whether the message was one. */
  async settle(message: unknown, answerer: Answerer): Promise<boolean> {
    if (!isMessage(message) || message['method'] !== undefined) return false
    const { id, result, error } = message
    if (result === undefined && error === undefined) return false
    const about = typeof id === 'string' ? unsealed(id, this.#key, `${PURPOSE}\0${answerer.callerId}`) : undefined
    if (typeof id !== 'string' || about === undefined) return true
    const told = isJsonObject(result) ? result : undefined
    const waiting = this.#open.get(id)
    if (waiting !== undefined) waiting(told)
    else if (told !== undefined) await passOn(answerer, textOf(about['job']), textOf(about['question']), told)
    return true
  }
}

export interface Inquiry {
  readonly id: string
  readonly heard: Promise<JsonObject | undefined>
}

/** Gives an answer to the job that asked, if it still asks the same. */
async function passOn(answerer: Answerer, jobId: string, key: string, result: JsonObject): Promise<void> {
  if (jobId === '') return
  try {
    const { api, signal } = answerer
    const job: Json = (await api.call({ method: 'GET', path: pathTo('jobs', jobId), signal })).body
    const questions = await questionsOf(answerer, objectOf(job))
    await answer(answerer, questions, { [key]: result })
  } catch (error) {
    // The client gets no answer to an answer: what is over by now is over.
    if (!(error instanceof ApiError)) throw error
  }
}
