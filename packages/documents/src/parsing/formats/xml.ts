import { UnreadableError } from '../parsed.ts'

export interface XmlHandler {
  /** Names come without their prefix. */
  open?(name: string, attributes: Attributes): void
  close?(name: string): void
  text?(text: string): void
}

/** What stands between the name of a tag and its end; read only where it is asked for. */
interface Attributes {
  get(name: string): string | undefined
  values(): readonly string[]
}

/** A longer tag is no markup that any program writes. */
const TAG_CHARS_MAX = 1_048_576
const ATTRIBUTE = /([^\s=/"'<>]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g
const ENTITY = /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(amp|lt|gt|quot|apos|nbsp));/gi
const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00A0' }

/**
 * Reads XML as it comes, in pieces, and keeps nothing: no tree, and no entities but those that every document has. What a
 * document defines by itself is left out, so that there is nothing to expand and nothing to fetch.
 */
export class XmlReader {
  readonly #handler: XmlHandler
  #decoder: InstanceType<typeof TextDecoder> | undefined
  #rest = ''

  constructor(handler: XmlHandler) {
    this.#handler = handler
  }

  write(piece: Uint8Array): void {
    this.#decoder ??= new TextDecoder(charsetOf(piece))
    this.writeText(this.#decoder.decode(piece, { stream: true }))
  }

  writeText(text: string): void {
    this.#rest = this.#consume(this.#rest + text)
    if (this.#rest.length > TAG_CHARS_MAX) throw new UnreadableError('BROKEN', 'it has a tag without an end.')
  }

  /** What is left without an end is text, as far as it is any. */
  end(): void {
    if (this.#rest !== '' && !this.#rest.startsWith('<')) this.#handler.text?.(plain(this.#rest))
    this.#rest = ''
  }

  #consume(text: string): string {
    let at = 0
    while (at < text.length) {
      const tagAt = text.indexOf('<', at)
      if (tagAt === -1) return this.#consumeText(text, at)
      if (tagAt > at) this.#handler.text?.(plain(text.slice(at, tagAt)))
      const next = this.#consumeMarkup(text, tagAt)
      if (next === undefined) return text.slice(tagAt)
      at = next
    }
    return ''
  }

  /** Text without an end so far. An entity that is cut in two waits for its other half. */
  #consumeText(text: string, at: number): string {
    const ampersandAt = text.lastIndexOf('&')
    const isCut = ampersandAt >= at && text.length - ampersandAt < 12 && !text.includes(';', ampersandAt)
    const end = isCut ? ampersandAt : text.length
    if (end > at) this.#handler.text?.(plain(text.slice(at, end)))
    return text.slice(end)
  }

  /** Where it goes on after the markup at `at`; nothing while its end is missing. */
  #consumeMarkup(text: string, at: number): number | undefined {
    if (text.startsWith('<!--', at)) return after(text, '-->', at + 4)
    if (text.startsWith('<![CDATA[', at)) {
      const end = text.indexOf(']]>', at + 9)
      if (end === -1) return undefined
      this.#handler.text?.(text.slice(at + 9, end))
      return end + 3
    }
    if (text.startsWith('<?', at)) return after(text, '?>', at + 2)
    // The beginning of one of the above may be cut.
    if (text.length - at < 9 && '<![CDATA['.startsWith(text.slice(at, at + 9))) return undefined
    if (text.startsWith('<!', at)) return declarationEnd(text, at)
    const end = tagEnd(text, at)
    if (end === undefined) return undefined
    this.#tag(text.slice(at + 1, end))
    return end + 1
  }

  #tag(tag: string): void {
    if (tag.startsWith('/')) {
      this.#handler.close?.(localName(tag.slice(1).trim()))
      return
    }
    const isEmpty = tag.endsWith('/')
    const [name = ''] = /^[^\s/>]+/.exec(tag) ?? []
    if (name === '') return
    const local = localName(name)
    this.#handler.open?.(local, new TagAttributes(tag.slice(name.length)))
    if (isEmpty) this.#handler.close?.(local)
  }
}

class TagAttributes implements Attributes {
  readonly #raw: string

  constructor(raw: string) {
    this.#raw = raw
  }

  get(name: string): string | undefined {
    for (const [, key = '', double, single] of this.#raw.matchAll(ATTRIBUTE)) {
      if (localName(key) === name) return plain(double ?? single ?? '')
    }
    return undefined
  }

  values(): readonly string[] {
    return [...this.#raw.matchAll(ATTRIBUTE)]
      .filter(([, key = '']) => !key.startsWith('xmlns'))
      .map((match) => plain(match[2] ?? match[3] ?? ''))
  }
}

/** Reads pieces to their end, or until `isEnough`. */
export async function readXml(
  pieces: AsyncIterable<Uint8Array>,
  handler: XmlHandler,
  isEnough: () => boolean = () => false,
): Promise<void> {
  const reader = new XmlReader(handler)
  for await (const piece of pieces) {
    reader.write(piece)
    if (isEnough()) return
  }
  reader.end()
}

function plain(text: string): string {
  if (!text.includes('&')) return text
  return text.replaceAll(ENTITY, (_all, hex: string | undefined, decimal: string | undefined, name: string) => {
    if (hex === undefined && decimal === undefined) return NAMED[name.toLowerCase()] ?? ''
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
    return code > 0 && code <= 0x10_ff_ff && (code < 0xd8_00 || code > 0xdf_ff) ? String.fromCodePoint(code) : ''
  })
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

function after(text: string, end: string, from: number): number | undefined {
  const at = text.indexOf(end, from)
  return at === -1 ? undefined : at + end.length
}

/** The end of a tag; `>` may stand in the value of an attribute. */
function tagEnd(text: string, at: number): number | undefined {
  let quote = ''
  for (let next = at + 1; next < text.length; next += 1) {
    const char = text[next]
    if (quote !== '') {
      if (char === quote) quote = ''
    } else if (char === '>') return next
    else if (char === '"' || char === "'") quote = char
  }
  return undefined
}

/** `<!DOCTYPE …>`, whose own declarations stand in brackets. */
function declarationEnd(text: string, at: number): number | undefined {
  const end = text.indexOf('>', at)
  const bracketAt = text.indexOf('[', at)
  if (bracketAt === -1 || (end !== -1 && end < bracketAt)) return end === -1 ? undefined : end + 1
  const closing = /\]\s*>/g
  closing.lastIndex = bracketAt
  return closing.exec(text) === null ? undefined : closing.lastIndex
}

function charsetOf(piece: Uint8Array): string {
  const [a, b] = piece
  if ((a === 0xff && b === 0xfe) || (a === 0x3c && b === 0)) return 'utf-16le'
  if ((a === 0xfe && b === 0xff) || (a === 0 && b === 0x3c)) return 'utf-16be'
  const head = Buffer.from(piece.subarray(0, 200)).toString('latin1')
  const declared = /^<\?xml[^>]*encoding\s*=\s*["']([\w.:-]+)["']/.exec(head.replace(/^\u00EF\u00BB\u00BF/, ''))?.[1]
  try {
    return declared === undefined ? 'utf8' : new TextDecoder(declared).encoding
  } catch {
    return 'utf8'
  }
}
