import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { Worker } from 'node:worker_threads'
import { nativePath, shownPath } from '../paths.ts'
import { FileSource, piecesOf } from './byte-source.ts'
import { readDocument } from './formats.ts'
import { parsedDocument } from './parsed-document.ts'
import type { Parsed } from './parsed.ts'
import { recogniseDocument } from './recognition.ts'
import type { Fingerprint, ParsedDocument } from './parser.ts'
import type { ParserAnswer, ParserRequest } from './process-parser.ts'

/*
 * The process in which files are read: one at a time, in memory and time that its parent bounds. A file that crashes it or
 * keeps it busy for ever harms nothing else. It writes nothing, and has nothing of its parent's environment.
 */

async function perform({ operation, path, limits, ocr }: ParserRequest): Promise<Fingerprint | ParsedDocument> {
  if (operation === 'fingerprint') return fingerprint(path)
  return parse(path, (source, name) =>
    operation === 'recognise' && ocr !== undefined
      ? recogniseDocument(source, limits, ocr)
      : readDocument(source, name, limits),
  )
}

function fingerprint(path: string): Fingerprint {
  const source = new FileSource(nativePath(path))
  try {
    const { size, mtimeMs } = source
    const hash = createHash('sha256')
    for (const piece of piecesOf(source)) hash.update(piece)
    return { size, mtimeMs, hash: hash.digest('hex') }
  } finally {
    source.close()
  }
}

async function parse(
  path: string,
  read: (source: FileSource, name: string) => Promise<Parsed>,
): Promise<ParsedDocument> {
  const source = new FileSource(nativePath(path))
  const name = basename(shownPath(path))
  try {
    return parsedDocument(name, await read(source, name))
  } finally {
    source.close()
  }
}

/** The code of our own errors, and of those of the operating system. */
function codeOf(error: unknown): string {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'BROKEN'
}

/** Above this, memory that is free is given back between two files; below, that would only cost time. */
const TIDY_BYTES = 75_000_000

function send(answer: Omit<ParserAnswer, 'rssBytes'>): void {
  if (process.memoryUsage.rss() > TIDY_BYTES) globalThis.gc?.()
  process.send?.({ ...answer })
}

process.on('message', (request: ParserRequest) => {
  perform(request).then(
    (value) => send({ id: request.id, value }),
    (error: unknown) => {
      const message = error instanceof Error ? error.message : String(error)
      send({ id: request.id, failure: { code: codeOf(error), message } })
    },
  )
})
// Without a parent there is nothing to read for. A thread looks too: a file that keeps this one busy keeps it from hearing.
process.on('disconnect', () => process.exit(0))
const watchdog = new Worker(
  `setInterval(() => { if (process.ppid !== ${process.ppid}) process.kill(process.pid, 'SIGKILL') }, 1000)`,
  {
    eval: true,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 4, maxYoungGenerationSizeMb: 1 },
  },
)
watchdog.unref()
// A reader that leaves a rejected promise behind has failed for its file: the parent sees the process end.
process.on('unhandledRejection', () => process.exit(70))
send({ id: 0, value: null })
