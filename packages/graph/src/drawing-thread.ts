import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'

/** A drawing that takes longer is given up. A hundred states take about a tenth of a second. */
const DRAWING_MS_MAX = 15_000
/** An idle thread gives its memory back after this. */
const IDLE_MS = 30_000
const MEMORY_MB_MAX = 256

/** A text, because it runs from sources as well as from built files. */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const loaded = import(workerData.viz).then(({ instance }) => instance())
parentPort.on('message', async (dot) => {
  try {
    parentPort.postMessage({ svg: (await loaded).renderString(dot, { format: 'svg', engine: 'dot' }) })
  } catch (error) {
    parentPort.postMessage({ error: String(error) })
  }
})
`

type Answer = { readonly svg: string } | { readonly error: string }

/** The graph is too large to be drawn in reasonable time and memory. */
export class GraphTooLargeError extends Error {
  override readonly name = 'GraphTooLargeError'
}

/**
 * Draws on a thread of its own, one graph after the other: a layout of some hundred states takes seconds, and the caller's
 * thread serves others meanwhile.
 *
 * No thread → `draw` starts one → it ends by itself after a while without work, and when a drawing takes too long.
 */
export class DrawingThread {
  readonly #drawingMsMax: number
  #thread: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(drawingMsMax = DRAWING_MS_MAX) {
    this.#drawingMsMax = drawingMsMax
  }

  draw(dot: string): Promise<string> {
    const drawn = this.#last.then(() => this.#draw(dot))
    this.#last = drawn.catch(() => undefined)
    return drawn
  }

  async #draw(dot: string): Promise<string> {
    clearTimeout(this.#idle)
    this.#thread ??= startThread()
    const thread = this.#thread
    thread.ref()
    try {
      const answer = await this.#answerOf(thread, dot)
      if ('svg' in answer) return answer.svg
      throw new Error(`The graph could not be drawn: ${answer.error}`)
    } finally {
      thread.unref()
      this.#idle = setTimeout(() => this.#end(), IDLE_MS)
      this.#idle.unref()
    }
  }

  #answerOf(thread: Worker, dot: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const over = (settle: () => void): void => {
        clearTimeout(late)
        thread.off('message', onMessage)
        thread.off('error', onError)
        settle()
      }
      const giveUp = (message: string): void => {
        this.#end()
        over(() => reject(new GraphTooLargeError(message)))
      }
      const late = setTimeout(
        () => giveUp(`The graph is too large: it was not drawn within ${this.#drawingMsMax / 1_000} s.`),
        this.#drawingMsMax,
      )
      const onMessage = (answer: Answer): void => over(() => resolve(answer))
      const onError = (error: Error): void => giveUp(`The graph is too large: ${error.message}`)
      thread.on('message', onMessage)
      thread.on('error', onError)
      thread.postMessage(dot)
    })
  }

  #end(): void {
    const thread = this.#thread
    this.#thread = undefined
    void thread?.terminate()
  }
}

function startThread(): Worker {
  const viz = pathToFileURL(createRequire(import.meta.url).resolve('@viz-js/viz')).href
  const resourceLimits = { maxOldGenerationSizeMb: MEMORY_MB_MAX }
  return new Worker(PROGRAM, { eval: true, workerData: { viz }, resourceLimits })
}
