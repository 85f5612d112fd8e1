/** One message of a stream of server-sent events. */
export interface SentMessage {
  readonly id: string
  readonly event: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Reads a stream of changes message by message; comments are counted. */
export class StreamReader {
  readonly response: Response
  beats = 0
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #stop: AbortController
  readonly #decoder = new TextDecoder()
  #text = ''

  private constructor(response: Response, stop: AbortController) {
    this.response = response
    this.#stop = stop
    if (response.body === null) throw new Error('The answer has no body.')
    this.#reader = response.body.getReader()
  }

  static async open(url: string, headers: Readonly<Record<string, string>>): Promise<StreamReader> {
    const stop = new AbortController()
    return new StreamReader(await fetch(url, { headers, signal: stop.signal }), stop)
  }

  /** The next message; `undefined` when the stream has ended. */
  async next(): Promise<SentMessage | undefined> {
    for (;;) {
      const end = this.#text.indexOf('\n\n')
      if (end !== -1) {
        const lines = this.#text.slice(0, end).split('\n')
        this.#text = this.#text.slice(end + 2)
        if (lines.some((line) => line.startsWith(':'))) this.beats += 1
        const data = field(lines, 'data')
        if (data === undefined) continue
        const body = JSON.parse(data) as SentMessage['data']
        return { id: field(lines, 'id') ?? '', event: field(lines, 'event') ?? 'message', data: body }
      }
      const { value, done } = await this.#reader.read()
      if (done) return undefined
      this.#text += this.#decoder.decode(value, { stream: true })
    }
  }

  /** The first message that names this job. */
  async untilJob(jobId: string, status?: string): Promise<SentMessage> {
    for (;;) {
      const message = await this.next()
      if (message === undefined) throw new Error('The stream has ended.')
      const jobs = (message.data['jobs'] ?? []) as readonly { readonly job_id: string; readonly status: string }[]
      if (jobs.some((job) => job.job_id === jobId && (status === undefined || job.status === status))) return message
    }
  }

  close(): void {
    this.#stop.abort()
  }
}

function field(lines: readonly string[], name: string): string | undefined {
  return lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
}
