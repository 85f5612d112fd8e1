import { Tokenizer, TokenizerMode } from 'parse5'
import type { TextSink } from '../text-sink.ts'

type Handler = ConstructorParameters<typeof Tokenizer>[1]
type Tag = Parameters<Handler['onStartTag']>[0]

/** What the browser starts a new line for. */
const BLOCKS = new Set(
  `address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption figure footer form
  h1 h2 h3 h4 h5 h6 head header hr html legend li main menu nav ol option p pre section select summary table tbody tfoot thead title
  tr ul`.split(/\s+/),
)
const RAW = new Set(['style', 'iframe', 'noembed', 'noframes', 'xmp'])
const HIDDEN = new Set(['script', 'style', 'iframe', 'noembed', 'noframes', 'template', 'svg', 'math', 'object'])
const DESCRIBED = new Set(['alt', 'title', 'aria-label'])

/** The text of a page as a reader sees it, without building the page. */
export function readHtml(html: string, sink: TextSink): void {
  const reader = new HtmlReader(sink)
  reader.read(html)
}

class HtmlReader implements Handler {
  readonly #sink: TextSink
  readonly #tokenizer: Tokenizer
  #hidden = ''
  #hiddenDepth = 0
  #title: string | undefined
  #heading: string | undefined

  constructor(sink: TextSink) {
    this.#sink = sink
    this.#tokenizer = new Tokenizer({ sourceCodeLocationInfo: false }, this)
  }

  read(html: string): void {
    const step = 65_536
    for (let at = 0; at < html.length && !this.#sink.isFull; at += step) {
      this.#tokenizer.write(html.slice(at, at + step), at + step >= html.length)
    }
  }

  onStartTag(tag: Tag): void {
    const name = tag.tagName
    if (name === 'script') this.#tokenizer.state = TokenizerMode.SCRIPT_DATA
    else if (RAW.has(name)) this.#tokenizer.state = TokenizerMode.RAWTEXT
    else if (name === 'title' || name === 'textarea') this.#tokenizer.state = TokenizerMode.RCDATA
    if (this.#hiddenDepth > 0) {
      if (name === this.#hidden && !tag.selfClosing) this.#hiddenDepth += 1
      return
    }
    if (HIDDEN.has(name) && !tag.selfClosing) {
      this.#hidden = name
      this.#hiddenDepth = 1
      return
    }
    if (BLOCKS.has(name)) this.#sink.break()
    else if (name === 'td' || name === 'th') this.#sink.add('\t')
    if (name === 'title') this.#title = ''
    if (name === 'h1') this.#heading = ''
    for (const { name: key, value } of tag.attrs) {
      if (DESCRIBED.has(key) && value !== '') this.#sink.add(` ${value} `)
    }
  }

  onEndTag(tag: Tag): void {
    const name = tag.tagName
    if (this.#hiddenDepth > 0) {
      if (name === this.#hidden) this.#hiddenDepth -= 1
      return
    }
    if (BLOCKS.has(name)) this.#sink.break()
    if (name === 'title' && this.#title !== undefined) {
      this.#sink.suggestTitle(this.#title)
      this.#title = undefined
    }
    if (name === 'h1') this.#heading = undefined
  }

  onCharacter({ chars }: { readonly chars: string }): void {
    if (this.#hiddenDepth > 0) return
    this.#sink.add(chars)
    if (this.#title !== undefined) this.#title += chars
    else if (this.#heading !== undefined) this.#heading += chars
  }

  onWhitespaceCharacter({ chars }: { readonly chars: string }): void {
    if (this.#hiddenDepth > 0) return
    this.#sink.add(chars.length > 1 ? ' ' : chars)
    if (this.#title !== undefined) this.#title += ' '
  }

  onNullCharacter(): void {}
  onComment(): void {}
  onDoctype(): void {}
  onEof(): void {}
}

/** What the page says of its own charset, in its head. */
export function declaredCharset(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.subarray(0, 2_048)).toString('latin1')
  return /<meta[^>]+charset\s*=\s*["']?([\w.:-]+)/i.exec(head)?.[1]
}
