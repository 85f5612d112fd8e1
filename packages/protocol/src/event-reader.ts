/** A message of a stream of server-sent events. */
export interface StreamMessage {
  readonly event: string
  readonly data: string
  /** Its own, or that of the newest one before it. */
  readonly id: string | undefined
}

/** More without the end of a message is no stream of ours. */
const MESSAGE_CHARS_MAX = 1_048_576

/** Reads server-sent events out of pieces of text. */
export class EventReader {
  #text = ''
  /** Of the newest message, or comment with an id: to go on with. */
  lastId: string | undefined

  /** The messages that end in this piece. Throws a `RangeError` when one has no end. */
  take(piece: string): readonly StreamMessage[] {
    const blocks = (this.#text + piece).split('\n\n')
    this.#text = blocks.pop() ?? ''
    if (this.#text.length > MESSAGE_CHARS_MAX) throw new RangeError('A message of the stream has no end.')
    return blocks.flatMap((block) => this.#messageIn(block))
  }

  #messageIn(block: string): readonly StreamMessage[] {
    const fields = new Map<string, string>()
    for (const line of block.split('\n')) {
      const { name = '', value = '' } = /^(?<name>\w+): ?(?<value>.*)$/.exec(line)?.groups ?? {}
      fields.set(name, value)
    }
    this.lastId = fields.get('id') ?? this.lastId
    const data = fields.get('data')
    return data === undefined ? [] : [{ event: fields.get('event') ?? 'message', data, id: this.lastId }]
  }
}
