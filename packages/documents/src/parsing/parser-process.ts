import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { ParseFailure } from './parser.ts'
import type { ParserAnswer, ParserRequest, ProcessParserOptions } from './process-parser.ts'

/** A process that has grown by its work is replaced between two files: memory that is free again does not shrink it. */
const WORN_SHARE = 0.7
/** How often the memory of a process at work is looked at. */
const LOOK_MS = 100
/** Of its memory limit, what the JavaScript heap may take; the rest is for the program and for buffers. */
const HEAP_SHARE = 0.5

interface Asked {
  readonly resolve: (answer: ParserAnswer) => void
  readonly reject: (error: Error) => void
}

/**
 * One process that reads files. Starting → idle ⇄ at work → ended. Its parent ends it when a file takes too long or too much
 * memory; that file then has failed, and the next one gets another process.
 */
export class ParserProcess {
  readonly ready: Promise<void>
  readonly ended: Promise<void>
  readonly #options: ProcessParserOptions
  readonly #child: ChildProcess
  #asked: Asked | undefined
  #askedAt = 0
  #reason: ParseFailure | undefined
  #isReady = false
  #hasEnded = false
  #isEnding = false

  constructor(options: ProcessParserOptions) {
    this.#options = options
    this.#child = forkProgram(options)
    // A process without work must not keep its parent alive.
    this.#child.unref()
    this.#child.channel?.unref()
    this.ready = new Promise((resolve, reject) => {
      this.#child.on('message', (message) => {
        const answer = answerOf(message)
        if (answer.id === 0) {
          this.#isReady = true
          resolve()
          return
        }
        this.#answered(answer)
      })
      this.#child.once('exit', () => reject(new ParseFailure('CRASHED', 'The parser process ended.')))
      this.#child.once('error', (error) => reject(error))
    })
    this.ready.catch(() => undefined)
    this.ended = new Promise((resolve) => {
      this.#child.once('exit', () => {
        this.#hasEnded = true
        this.#fail(this.#reason ?? new ParseFailure('CRASHED', 'The file made the parser crash.'))
        resolve()
      })
      // A process that could not be started emits no exit.
      this.#child.once('error', () => {
        this.#hasEnded = true
        this.#fail(new ParseFailure('CRASHED', 'The parser process cannot be started.'))
        resolve()
      })
    })
  }

  get isIdle(): boolean {
    return this.#asked === undefined && !this.#hasEnded && !this.#isEnding
  }

  /** How long the file at hand has taken so far. */
  get busyMs(): number {
    return this.#asked === undefined ? 0 : performance.now() - this.#askedAt
  }

  async ask(request: ParserRequest): Promise<ParserAnswer> {
    const answered = new Promise<ParserAnswer>((resolve, reject) => {
      this.#asked = { resolve, reject }
    })
    answered.catch(() => undefined)
    this.#askedAt = performance.now()
    this.#child.ref()
    this.#child.channel?.ref()
    if (!this.#isReady) await this.ready.catch(() => undefined)
    // The text of pictures has bounds of its own: the process that reads a page holds its pixels.
    const timeoutMs = this.#options.timeoutMs + (request.ocr?.timeoutMs ?? 0)
    const memoryBytes = this.#options.memoryBytes + (request.ocr?.memoryBytes ?? 0)
    const timer = setTimeout(() => {
      const seconds = timeoutMs / 1_000
      this.#kill(new ParseFailure('TIMEOUT', `The file took longer than ${seconds} s to read.`))
    }, timeoutMs)
    const watch = setInterval(() => this.#checkMemory(memoryBytes), LOOK_MS)
    try {
      if (!this.#hasEnded) this.#child.send(request, () => undefined)
      return await answered
    } finally {
      clearTimeout(timer)
      clearInterval(watch)
    }
  }

  async end(): Promise<void> {
    this.#isEnding = true
    this.#child.kill('SIGKILL')
    await this.ended
  }

  #answered(answer: ParserAnswer): void {
    const asked = this.#asked
    this.#asked = undefined
    this.#child.unref()
    this.#child.channel?.unref()
    if (answer.rssBytes > this.#options.memoryBytes * WORN_SHARE) {
      this.#isEnding = true
      this.#child.kill('SIGKILL')
    }
    asked?.resolve(answer)
  }

  #checkMemory(memoryBytes: number): void {
    const bytes = residentBytes(this.#child.pid)
    if (bytes === undefined || bytes <= memoryBytes) return
    const megabytes = Math.round(memoryBytes / 1_000_000)
    this.#kill(new ParseFailure('MEMORY', `The file takes more than ${megabytes} MB of memory to read.`))
  }

  #kill(reason: ParseFailure): void {
    this.#reason ??= reason
    this.#child.kill('SIGKILL')
  }

  #fail(error: Error): void {
    this.#asked?.reject(error)
    this.#asked = undefined
  }
}

const PAGE_BYTES = 4_096

/** Nothing where the system has no such file; the heap is bounded all the same. */
function residentBytes(pid: number | undefined): number | undefined {
  try {
    const [, resident] = readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')
    return Number(resident) * PAGE_BYTES
  } catch {
    return undefined
  }
}

/** From its sources, as tests do, it needs a loader: Node 20 does not read TypeScript. */
function forkProgram({ memoryBytes }: ProcessParserOptions): ChildProcess {
  const isSource = import.meta.url.endsWith('.ts')
  const built = new URL('parser-main.js', import.meta.url)
  const program = fileURLToPath(isSource ? built.href.replace(/js$/, 'ts') : built)
  const heapMegabytes = Math.round((memoryBytes * HEAP_SHARE) / 1_048_576)
  const loader = isSource ? ['--conditions=source', '--import', createRequire(import.meta.url).resolve('tsx')] : []
  return fork(program, [], {
    execArgv: [
      `--max-old-space-size=${heapMegabytes}`,
      '--max-semi-space-size=2',
      '--optimize-for-size',
      '--expose-gc',
      '--no-warnings',
      ...loader,
    ],
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
}

/** Boundary: the program is ours. */
function answerOf(message: unknown): ParserAnswer {
  return message as ParserAnswer
}
