import { UnreadableError } from '../parsed.ts'
import type { TextSink } from '../text-sink.ts'

/** Groups that hold no text of the document. Those that begin with `\*` are left out as well, but for links. */
const HIDDEN = new Set(
  `fonttbl colortbl stylesheet listtable listoverridetable rsidtbl generator themedata colorschememapping datastore latentstyles
  pict objdata xmlnstbl filetbl revtbl mmathPr pgptbl wgrffmtfilter datafield fldinst nonshppict docvar userprops operator company
  author doccomm creatim revtim printim version vern keywords category subject manager hlinkbase bkmkstart bkmkend ftnsep ftnsepc
  aftnsep aftnsepc blipuid sp`.split(/\s+/),
)

const CHARSETS: Readonly<Record<number, number>> = {
  0: 1252, 77: 10_000, 128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256,
  186: 1257, 204: 1251, 222: 874, 238: 1250, 255: 866,
} // prettier-ignore

const NAMES: Readonly<Record<number, string>> = {
  866: 'ibm866', 874: 'windows-874', 932: 'shift_jis', 936: 'gbk', 949: 'euc-kr', 950: 'big5', 10_000: 'macintosh',
  10_007: 'x-mac-cyrillic', 20_866: 'koi8-r', 21_866: 'koi8-u', 28_595: 'iso-8859-5', 65_001: 'utf8',
} // prettier-ignore

const SYMBOLS: Readonly<Record<string, string>> = {
  par: '\n', line: '\n', sect: '\n', page: '\n', row: '\n', cell: '\t', nestcell: '\t', nestrow: '\n', tab: '\t',
  emdash: '—', endash: '–', lquote: '‘', rquote: '’', ldblquote: '“', rdblquote: '”', bullet: '•', emspace: ' ',
  enspace: ' ', qmspace: ' ',
} // prettier-ignore

interface Group {
  /** Characters that follow `\uN` for programs that do not know it. */
  readonly skip: number
  readonly codepage: number
  readonly isHidden: boolean
  readonly isFontTable: boolean
  readonly isTitle: boolean
}

/** The deepest that a document nests; more is an attack. */
const DEPTH_MAX = 10_000
const CONTROL = /([a-z]+)(-?\d{1,10})? ?/iy

/**
 * Rich Text Format. Groups in braces carry their own settings; letters beyond ASCII come as bytes in the codepage of their
 * font (`\'e4`) or as numbers (`\u1076?`), where the characters behind are for programs that do not know those.
 */
export class RtfReader {
  readonly #rtf: string
  readonly #sink: TextSink
  readonly #fonts = new Map<number, number>()
  readonly #stack: Group[] = []
  readonly #bytes: number[] = []
  #group: Group
  #defaultCodepage = 1252
  #font = 0
  #toSkip = 0
  #isFirst = false
  #title = ''
  #at = 0

  constructor(rtf: string, sink: TextSink) {
    this.#rtf = rtf
    this.#sink = sink
    this.#group = { skip: 1, codepage: 0, isHidden: false, isFontTable: false, isTitle: false }
  }

  /** `rtf` is the file as Latin-1: one character a byte. */
  read(): void {
    if (!this.#rtf.startsWith(String.raw`{\rtf`)) throw new UnreadableError('BROKEN', 'it does not begin like RTF.')
    while (this.#at < this.#rtf.length && !this.#sink.isFull) this.#step()
    this.#flush()
    this.#sink.suggestTitle(this.#title)
  }

  #step(): void {
    const char = this.#rtf[this.#at] ?? ''
    this.#at += 1
    if (char === '{') this.#open()
    else if (char === '}') this.#close()
    else if (char === '\\') this.#control()
    else if (char !== '\r' && char !== '\n') this.#byte(char.charCodeAt(0))
  }

  #open(): void {
    if (this.#stack.length >= DEPTH_MAX) throw new UnreadableError('BROKEN', 'its groups nest too deep.')
    this.#flush()
    this.#stack.push(this.#group)
    this.#isFirst = true
    this.#toSkip = 0
  }

  #close(): void {
    this.#flush()
    this.#group = this.#stack.pop() ?? this.#group
    this.#toSkip = 0
  }

  #control(): void {
    CONTROL.lastIndex = this.#at
    const match = CONTROL.exec(this.#rtf)
    if (match === null) {
      this.#symbol()
      return
    }
    this.#at = CONTROL.lastIndex
    const [, word = '', digits] = match
    const wasFirst = this.#isFirst
    this.#isFirst = false
    if (wasFirst && HIDDEN.has(word)) this.#group = { ...this.#group, isHidden: true, isFontTable: word === 'fonttbl' }
    else if (wasFirst && word === 'title') this.#group = { ...this.#group, isTitle: true }
    else this.#word(word, digits === undefined ? undefined : Number(digits))
  }

  /** A backslash before anything but a letter. */
  #symbol(): void {
    const char = this.#rtf[this.#at] ?? ''
    this.#at += 1
    if (char === "'") {
      const byte = Number.parseInt(this.#rtf.slice(this.#at, this.#at + 2), 16)
      this.#at += 2
      if (!Number.isNaN(byte)) this.#byte(byte)
    } else if (char === '*') this.#mark()
    else if (char === '~') this.#text('\u00A0')
    else if (char === '_') this.#text('-')
    else if (char === '\n' || char === '\r') this.#text('\n')
    else if (char === '\\' || char === '{' || char === '}') this.#byte(char.charCodeAt(0))
    // `\-` is a place where a word may be parted: nothing that one reads.
  }

  /** At the beginning of a group: it may be left out by whoever does not know it. Elsewhere it says nothing. */
  #mark(): void {
    const isHidden = this.#isFirst && !/^\\(?:fldrslt|shptxt|hl)/.test(this.#ahead())
    if (isHidden) this.#group = { ...this.#group, isHidden }
  }

  #ahead(): string {
    return this.#rtf.slice(this.#at, this.#at + 16)
  }

  #word(word: string, value: number | undefined): void {
    const symbol = SYMBOLS[word]
    if (symbol !== undefined) this.#text(symbol)
    else if (word === 'u' && value !== undefined) this.#unicode(value)
    else if (word === 'uc') this.#group = { ...this.#group, skip: value ?? 1 }
    else if (word === 'ansicpg') this.#defaultCodepage = value ?? 1252
    else if (word === 'mac') this.#defaultCodepage = 10_000
    else if (word === 'pc') this.#defaultCodepage = 437
    else if (word === 'bin') this.#at += Math.max(0, value ?? 0)
    else if (word === 'f') this.#setFont(value ?? 0)
    else if (word === 'fcharset' && this.#group.isFontTable) this.#fonts.set(this.#font, CHARSETS[value ?? 0] ?? 0)
    else if (word === 'cpg' && this.#group.isFontTable) this.#fonts.set(this.#font, value ?? 0)
    else if (word === 'plain') this.#setCodepage(0)
  }

  #setFont(font: number): void {
    this.#font = font
    if (!this.#group.isFontTable) this.#setCodepage(this.#fonts.get(font) ?? 0)
  }

  #setCodepage(codepage: number): void {
    if (codepage === this.#group.codepage) return
    this.#flush()
    this.#group = { ...this.#group, codepage }
  }

  #unicode(value: number): void {
    this.#text(String.fromCharCode(value < 0 ? value + 65_536 : value))
    this.#toSkip = this.#group.skip
  }

  #byte(byte: number): void {
    this.#isFirst = false
    if (this.#toSkip > 0) {
      this.#toSkip -= 1
      return
    }
    if (!this.#group.isHidden) this.#bytes.push(byte)
    if (this.#bytes.length >= 65_536) this.#flush()
  }

  #text(text: string): void {
    this.#flush()
    if (!this.#group.isHidden) this.#put(text)
  }

  /** Bytes of one codepage belong together: some have two for a letter. */
  #flush(): void {
    if (this.#bytes.length === 0) return
    const bytes = Uint8Array.from(this.#bytes)
    this.#bytes.length = 0
    const codepage = this.#group.codepage === 0 ? this.#defaultCodepage : this.#group.codepage
    // Fonts without a Cyrillic charset of their own are used for Cyrillic in documents whose codepage is Cyrillic.
    const used = codepage === 1252 && this.#defaultCodepage === 1251 ? 1251 : codepage
    this.#put(decoderFor(used).decode(bytes))
  }

  #put(text: string): void {
    if (this.#group.isTitle) this.#title += text
    else this.#sink.add(text)
  }
}

type Decoder = InstanceType<typeof TextDecoder>

const decoders = new Map<number, Decoder>()

function decoderFor(codepage: number): Decoder {
  let decoder = decoders.get(codepage)
  if (decoder === undefined) {
    decoder = newDecoder(NAMES[codepage] ?? `windows-${codepage}`)
    decoders.set(codepage, decoder)
  }
  return decoder
}

function newDecoder(name: string): Decoder {
  try {
    return new TextDecoder(name)
  } catch {
    return new TextDecoder('windows-1252')
  }
}
