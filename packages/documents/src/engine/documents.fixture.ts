import { mkdtemp, rm, readFile, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Log } from '@impresario/core'
import { onTestFinished } from 'vitest'
import { documentsConfig } from '../config/config.ts'
import { createDocuments } from '../documents.ts'
import type { Documents, DocumentsOptions } from '../documents.ts'
import { parsedDocument } from '../parsing/parsed-document.ts'
import { ParseFailure } from '../parsing/parser.ts'
import type { DocumentParser, Fingerprint, ParsedDocument } from '../parsing/parser.ts'
import { nativePath } from '../paths.ts'

export async function newDirectory(name = 'documents'): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), `impresario-${name}-`))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** Settings under which a test need not wait. */
export const QUICK = documentsConfig({
  watch: { quiet: '20ms', rescan: '1h', poll: '100ms' },
  engine: { retry: { initial_delay: '1ms', max_delay: '5ms' } },
})

export async function startDocuments(options: DocumentsOptions): Promise<Documents> {
  const documents = createDocuments({ config: QUICK, ...options })
  onTestFinished(() => documents.stop())
  await documents.start()
  return documents
}

/** Reads plain text in this process, and lets a test decide how it goes. */
export class TextParser implements DocumentParser {
  readonly parsed: string[] = []
  underWay = 0
  mostUnderWay = 0
  /** Runs before each file is read. */
  before: (path: string) => Promise<void> | void = () => undefined

  async fingerprint(path: string): Promise<Fingerprint> {
    const facts = await stat(nativePath(path)).catch(() => {
      throw new ParseFailure('GONE', 'The file is gone.')
    })
    const content = await readFile(nativePath(path), 'latin1')
    return { size: facts.size, mtimeMs: facts.mtimeMs, hash: content }
  }

  async parseDocument(path: string): Promise<ParsedDocument> {
    this.underWay += 1
    this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay)
    try {
      await this.before(path)
      const text = await readFile(nativePath(path), 'utf8')
      this.parsed.push(path)
      const name = path.slice(path.lastIndexOf('/') + 1)
      return parsedDocument(name, { kind: 'txt', title: '', text, isTruncated: false })
    } finally {
      this.underWay -= 1
    }
  }

  async check(): Promise<void> {}
  async close(): Promise<void> {}
}

export interface LogLine {
  readonly level: string
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

export function memoryLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  const writer =
    (level: string) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      lines.push({ level, message, fields })
    }
  return { log: { debug: writer('debug'), info: writer('info'), warn: writer('warn'), error: writer('error') }, lines }
}

export async function pathsFor(documents: Documents, query: string): Promise<readonly string[]> {
  return (await documents.search(query, { limit: 100 })).hits.map(({ path }) => path).toSorted()
}
