import { ParseFailure } from './parser.ts'
import type { DocumentParser, Fingerprint, ParsedDocument, ParseFailureCode } from './parser.ts'
import type { ParseLimits } from './parsed.ts'
import { isPictureName } from './kind.ts'
import type { Ocr, OcrSettings, OcrStatus } from './ocr.ts'
import { ParserProcess } from './parser-process.ts'

export interface ParserRequest {
  readonly id: number
  readonly operation: 'fingerprint' | 'parse' | 'recognise'
  readonly path: string
  readonly limits: ParseLimits
  /** For `recognise`. */
  readonly ocr?: OcrSettings | undefined
}

export interface ParserAnswer {
  readonly id: number
  readonly value?: Fingerprint | ParsedDocument | null
  readonly failure?: { readonly code: string; readonly message: string }
  readonly rssBytes: number
}

export interface ProcessParserOptions {
  readonly processesMax: number
  /** Longest time for one file. */
  readonly timeoutMs: number
  /** Largest memory of one process. */
  readonly memoryBytes: number
  readonly limits: ParseLimits
  /** How the text of pictures is recognised; nothing where it is not. */
  readonly ocr?: Ocr
}

/** Work for others is not held up by one slow file for longer than this: then another process starts. */
const PATIENCE_MS = 1_000
/** An extra process that has had nothing to do for so long ends. */
const IDLE_MS = 5_000

interface Waiting {
  readonly request: ParserRequest
  readonly resolve: (value: Fingerprint | ParsedDocument | null) => void
  readonly reject: (error: Error) => void
}

/**
 * Reads files in processes of its own, one file at a time in each. One process is enough for most folders; another one
 * starts while a file takes long, and ends again. A process that fails is replaced, and only its file has failed.
 */
export class ProcessParser implements DocumentParser {
  readonly #options: ProcessParserOptions
  readonly #processes = new Set<ParserProcess>()
  readonly #waiting: Waiting[] = []
  readonly #idleTimers = new Map<ParserProcess, NodeJS.Timeout>()
  #patience: NodeJS.Timeout | undefined
  #nextId = 0
  #isClosed = false

  constructor(options: ProcessParserOptions) {
    this.#options = options
  }

  async fingerprint(path: string): Promise<Fingerprint> {
    return fingerprintOf(await this.#ask('fingerprint', path))
  }

  get ocr(): OcrStatus {
    return this.#options.ocr?.status ?? { is_on: false, reason: 'It is not set up.' }
  }

  /** A picture, and a PDF without any text, is given to the program that recognises text, where there is one. */
  async parseDocument(path: string): Promise<ParsedDocument> {
    const isReady = this.#options.ocr?.settings !== undefined
    if (isReady && isPictureName(path)) return documentOf(await this.#ask('recognise', path))
    const document = documentOf(await this.#ask('parse', path))
    if (!isReady || document.kind !== 'pdf' || document.textChars > 0) return document
    const { title } = document
    const recognised = documentOf(await this.#ask('recognise', path))
    return { ...recognised, title, terms: { ...recognised.terms, title: document.terms.title } }
  }

  async check(): Promise<void> {
    const process = [...this.#processes][0] ?? this.#start()
    await process.ready
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#patience)
    for (const { reject } of this.#waiting.splice(0)) reject(new ParseFailure('CRASHED', 'The parser was closed.'))
    await Promise.all([...this.#processes].map((process) => process.end()))
  }

  #ask(operation: ParserRequest['operation'], path: string): Promise<Fingerprint | ParsedDocument | null> {
    if (this.#isClosed) return Promise.reject(new ParseFailure('CRASHED', 'The parser was closed.'))
    this.#nextId += 1
    const { limits, ocr } = this.#options
    const how = operation === 'recognise' ? { ocr: ocr?.settings } : {}
    const request: ParserRequest = { id: this.#nextId, operation, path, limits, ...how }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject })
      this.#assign()
    })
  }

  #assign(): void {
    while (this.#waiting.length > 0) {
      const idle = [...this.#processes].find((process) => process.isIdle)
      if (idle !== undefined) void this.#run(idle)
      else if (this.#processes.size === 0) this.#start()
      else break
    }
    if (this.#waiting.length === 0 || this.#processes.size >= this.#options.processesMax) return
    this.#patience ??= setTimeout(() => {
      this.#patience = undefined
      if (this.#isClosed) return
      const areSlow = [...this.#processes].every(({ busyMs }) => busyMs >= PATIENCE_MS)
      if (this.#waiting.length > 0 && areSlow) this.#start()
      this.#assign()
    }, PATIENCE_MS).unref()
  }

  #start(): ParserProcess {
    const process = new ParserProcess(this.#options)
    this.#processes.add(process)
    void process.ended.then(() => {
      this.#processes.delete(process)
      clearTimeout(this.#idleTimers.get(process))
      this.#idleTimers.delete(process)
      if (!this.#isClosed) this.#assign()
    })
    return process
  }

  async #run(process: ParserProcess): Promise<void> {
    const waiting = this.#waiting.shift()
    if (waiting === undefined) return
    clearTimeout(this.#idleTimers.get(process))
    try {
      const { value, failure } = await process.ask(waiting.request)
      if (failure === undefined) waiting.resolve(value ?? null)
      else waiting.reject(failureOf(failure))
    } catch (error) {
      waiting.reject(error instanceof Error ? error : new Error(String(error)))
    }
    if (this.#processes.size > 1) {
      this.#idleTimers.set(
        process,
        setTimeout(() => {
          void process.end()
        }, IDLE_MS).unref(),
      )
    }
    if (!this.#isClosed) this.#assign()
  }
}

const SYSTEM_CODES: Readonly<Record<string, ParseFailureCode>> = { ENOENT: 'GONE', ENOTDIR: 'GONE', ELOOP: 'GONE' }
const OWN_CODES: ReadonlySet<string> = new Set(['UNSUPPORTED', 'BROKEN', 'ENCRYPTED', 'TOO_LARGE'])

function failureOf({ code, message }: { readonly code: string; readonly message: string }): ParseFailure {
  if (OWN_CODES.has(code)) return new ParseFailure(ownCode(code), message)
  const known = SYSTEM_CODES[code]
  if (known !== undefined) return new ParseFailure(known, 'The file is gone.')
  // What the operating system says names the path; the code alone is enough.
  if (/^E[A-Z]+$/.test(code)) return new ParseFailure('IO', `The file cannot be read (${code}).`)
  return new ParseFailure('BROKEN', `The file is broken: ${message}`)
}

/** Boundaries: the process is ours and answers what it was asked for. */
function ownCode(code: string): ParseFailureCode {
  return code as ParseFailureCode
}
function fingerprintOf(value: unknown): Fingerprint {
  return value as Fingerprint
}
function documentOf(value: unknown): ParsedDocument {
  return value as ParsedDocument
}
