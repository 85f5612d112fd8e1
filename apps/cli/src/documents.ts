import { access } from 'node:fs/promises'
import { resolve } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import type { Documents, DocumentsConfig, FileRecord, Hit, IndexView } from '@impresario/documents'
import { EXIT, Failure } from './failure.ts'
import { printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { screenFor } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { StopSignals, untilStopped } from './signals.ts'
import { facts } from './table.ts'

export interface DocumentOptions extends GlobalOptions {
  readonly data: string
}
export interface AddOptions extends DocumentOptions {
  readonly config?: string
}
export interface SearchCommandOptions extends DocumentOptions {
  readonly limit: number
  readonly offset: number
}
export interface WatchOptions extends DocumentOptions {
  readonly config?: string
}

/** How often the progress of indexing is drawn. */
const DRAW_MS = 200
const LINE_MS = 5_000

export async function add(paths: readonly string[], options: AddOptions): Promise<number> {
  const screen = screenFor(options)
  const began = performance.now()
  let documents: Documents
  try {
    documents = await open(options)
  } catch (error) {
    if (!isInUse(error)) throw error
    const requests = paths.map((path) => ({ kind: 'add' as const, path: resolve(path) }))
    for (const { path } of requests) await access(path).catch(() => refuseMissing(path))
    return leaveRequests(requests, options)
  }
  const bar = new ProgressBar(screen, documents)
  const all = { found: 0, skipped: 0, unreadable: [] as string[] }
  try {
    for (const path of paths) {
      const { found, skipped, unreadable } = await documents.add(path)
      all.found += found
      all.skipped += skipped
      all.unreadable.push(...unreadable)
    }
    await documents.idle()
    const { files } = await documents.stats()
    const failures = await failuresUnder(documents, paths)
    const seconds = (performance.now() - began) / 1_000
    bar.end()
    report(screen, { ...all, files, failures, seconds })
  } finally {
    bar.end()
    await documents.stop()
  }
  return EXIT.ok
}

async function failuresUnder(documents: Documents, paths: readonly string[]): Promise<readonly FileRecord[]> {
  const found = new Map<string, FileRecord>()
  for (const path of paths) {
    let after = ''
    for (;;) {
      const page = await documents.files({ status: 'failed', under: resolve(path), after })
      for (const file of page) found.set(file.path, file)
      const last = page.at(-1)
      if (last === undefined) break
      after = last.path
    }
  }
  return [...found.values()]
}

interface Report {
  readonly found: number
  readonly skipped: number
  readonly unreadable: readonly string[]
  readonly files: Readonly<Record<string, number>>
  readonly failures: readonly FileRecord[]
  readonly seconds: number
}

function report(screen: Screen, { found, skipped, unreadable, files, failures, seconds }: Report): void {
  const { completed = 0, failed = 0 } = files
  if (screen.isJson) {
    const named = failures.map(({ path, code, error }) => ({ path, code: code ?? null, error: error ?? null }))
    const took = Number(seconds.toFixed(3))
    printJson(screen, { found, skipped, unreadable, completed, failed, seconds: took, failures: named })
    return
  }
  const what = `${found.toLocaleString('en')} files found, ${completed.toLocaleString('en')} documents searchable`
  screen.out(`${screen.paint('green', '✓')} ${what}, in ${seconds.toFixed(1)} s.`)
  if (skipped > 0) screen.out(`  ${skipped.toLocaleString('en')} of the files are of kinds that have no text.`)
  for (const folder of unreadable) screen.out(`${screen.paint('red', '✗')} The folder ${plain(folder)} cannot be read.`)
  if (failures.length === 0) return
  screen.out(`${screen.paint('red', '✗')} ${failures.length.toLocaleString('en')} could not be read:`)
  for (const { path, error } of failures.slice(0, 20)) screen.out(`  ${plain(path)}\n    ${plain(error ?? '')}`)
}

/** Characters that a terminal obeys instead of showing them. Each stays one character: positions hold. */
const CONTROLS = /[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu

/** Text from files and their names: nobody's document rules the terminal of its reader. */
function plain(text: string): string {
  return text.replaceAll(CONTROLS, '\uFFFD')
}

export async function search(words: readonly string[], options: SearchCommandOptions): Promise<number> {
  const { DocumentSearch } = await import('@impresario/documents/search')
  const screen = screenFor(options)
  const index = new DocumentSearch(resolve(options.data))
  try {
    const { hits, hasMore } = index.search(words.join(' '), { limit: options.limit, offset: options.offset })
    if (screen.isJson) {
      printJson(screen, { hits: hits.map(wireHit), has_more: hasMore })
      return EXIT.ok
    }
    if (hits.length === 0) screen.err('Nothing was found.')
    for (const hit of hits) showHit(hit, screen)
    if (hasMore) screen.err(screen.paint('dim', `There are more: --offset ${options.offset + hits.length}`))
    return EXIT.ok
  } finally {
    index.close()
  }
}

function wireHit({ modifiedAt, ...rest }: Hit): Readonly<Record<string, unknown>> {
  return { ...rest, modified_at: modifiedAt }
}

function showHit({ path, title, snippet: cut, highlights }: Hit, screen: Screen): void {
  const snippet = plain(cut)
  screen.out(`${screen.paint('cyan', plain(path))}${title === '' ? '' : `  ${plain(title)}`}`)
  let text = ''
  let at = 0
  for (const [start, end] of highlights) {
    text += snippet.slice(at, start) + screen.paint('bold', snippet.slice(start, end))
    at = end
  }
  screen.out(`  ${text}${snippet.slice(at)}\n`)
}

export async function watch(folders: readonly string[], options: WatchOptions): Promise<number> {
  const screen = screenFor(options)
  const signals = new StopSignals()
  const documents = await open(options, folders)
  signals.hold()
  screen.err(`Watching. The index is in ${resolve(options.data)}.`)
  const bar = new ProgressBar(screen, documents)
  await untilStopped({
    signals,
    screen,
    waitsFor: () => 'waiting for files that are being read.',
    stop: async () => {
      bar.end()
      await documents.stop()
    },
  })
  return EXIT.ok
}

export async function status(
  path: string | undefined,
  options: DocumentOptions & { readonly failed?: boolean },
): Promise<number> {
  const { documentsConfig, findOcr, viewIndex } = await import('@impresario/documents')
  const screen = screenFor(options)
  const view = viewIndex(resolve(options.data))
  const { status: ocr } = findOcr(documentsConfig().ocr)
  try {
    const { byStatus, documents, textChars } = view.counts()
    const scope = path === undefined ? {} : { under: resolve(path) }
    const listed = listedFiles(view, scope, path !== undefined, options.failed === true)
    if (screen.isJson) {
      printJson(screen, { documents, files: byStatus, text_chars: textChars, ocr, listed: listed.map(wireFile) })
      return EXIT.ok
    }
    screen.out(
      facts(screen, [
        ['documents', documents.toLocaleString('en')],
        ...Object.entries(byStatus).map(([name, number]) => [name, number.toLocaleString('en')] as const),
        ['characters', textChars.toLocaleString('en')],
        ['text in pictures', ocr.is_on ? ocr.languages.join(', ') : `off. ${ocr.reason}`],
      ]),
    )
    for (const file of listed) screen.out(fileLine(screen, file))
    return EXIT.ok
  } finally {
    view.close()
  }
}

/** Those that were asked for; without a path, those that need a look. */
function listedFiles(
  view: IndexView,
  scope: { readonly under?: string },
  isAsked: boolean,
  isFailedOnly: boolean,
): readonly FileRecord[] {
  if (isAsked && !isFailedOnly) return view.files(scope)
  return [
    ...view.files({ ...scope, status: 'failed' }),
    ...(isFailedOnly ? [] : view.files({ ...scope, status: 'retry' })),
  ]
}

function fileLine(screen: Screen, { path, status: state, attempts, error }: FileRecord): string {
  const colour = state === 'completed' ? 'green' : state === 'failed' ? 'red' : 'yellow'
  const tries = attempts > 1 ? ` after ${attempts} tries` : ''
  return `${screen.paint(colour, state)}${tries}  ${plain(path)}${error === undefined ? '' : `\n  ${plain(error)}`}`
}

function wireFile(file: FileRecord): Readonly<Record<string, unknown>> {
  const { path, status: state, attempts, code, error, kind, title, size, mtimeMs, isTruncated, updatedAt } = file
  return {
    path,
    status: state,
    attempts,
    code: code ?? null,
    error: error ?? null,
    kind: kind ?? null,
    title,
    size,
    truncated: isTruncated,
    modified_at: new Date(mtimeMs).toISOString(),
    updated_at: new Date(updatedAt).toISOString(),
  }
}

export async function retry(path: string | undefined, options: DocumentOptions): Promise<number> {
  const screen = screenFor(options)
  return withOpen(
    options,
    async (documents) => {
      const tried = await documents.retry(path)
      await documents.idle()
      const { files } = await documents.stats()
      if (screen.isJson) printJson(screen, { retried: tried, failed: files['failed'] ?? 0 })
      else screen.out(`${tried.toLocaleString('en')} files were read again; ${files['failed'] ?? 0} failed.`)
    },
    { kind: 'retry', path: path === undefined ? '' : resolve(path) },
  )
}

export async function reindex(options: DocumentOptions): Promise<number> {
  const screen = screenFor(options)
  return withOpen(
    options,
    async (documents) => {
      const bar = new ProgressBar(screen, documents)
      const number = await documents.reindex()
      await documents.idle()
      bar.end()
      if (screen.isJson) printJson(screen, { reindexed: number })
      else screen.out(`${screen.paint('green', '✓')} ${number.toLocaleString('en')} documents were read again.`)
    },
    { kind: 'reindex', path: '' },
  )
}

/** In this process; or, where another one has the directory open, there. */
async function withOpen(
  options: DocumentOptions,
  work: (documents: Documents) => Promise<void>,
  request: { readonly kind: 'retry' | 'reindex'; readonly path: string },
): Promise<number> {
  let documents: Documents
  try {
    documents = await open(options)
  } catch (error) {
    if (!isInUse(error)) throw error
    return leaveRequests([request], options)
  }
  try {
    await work(documents)
  } finally {
    await documents.stop()
  }
  return EXIT.ok
}

/** For the process that has the directory open. */
async function leaveRequests(
  requests: readonly { readonly kind: 'add' | 'retry' | 'reindex'; readonly path: string }[],
  options: DocumentOptions,
): Promise<number> {
  const screen = screenFor(options)
  const { requestFrom } = await import('@impresario/documents')
  requestFrom(resolve(options.data), requests)
  if (screen.isJson) printJson(screen, { requested: requests[0]?.kind })
  else screen.out('Another process watches this index and will do it.')
  return EXIT.ok
}

function refuseMissing(path: string): never {
  throw new Failure('INPUT_REFUSED', `${path} does not exist, or cannot be read.`)
}

/** `folders`: those to watch. Without them it only adds files and searches. */
async function open(options: AddOptions, folders?: readonly string[]): Promise<Documents> {
  const { createDocuments, documentsConfig, loadDocumentsConfig } = await import('@impresario/documents')
  const given: DocumentsConfig =
    options.config === undefined ? documentsConfig() : loadDocumentsConfig(resolve(options.config))
  if (folders?.length === 0 && given.folders.length === 0) {
    throw new Failure('USAGE', 'There are no folders to watch.', {
      hint: 'Name them on the command line, or under "folders:" in the file of --config.',
      exitCode: EXIT.usage,
    })
  }
  const config = folders === undefined ? { ...given, folders: [] } : given
  // The heap grows slowly instead of fast: half the memory, for a few percent of the time.
  setFlagsFromString('--optimize-for-size')
  const documents = createDocuments({ directory: resolve(options.data), folders: folders ?? [], config })
  await documents.start()
  return documents
}

function isInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'STORAGE_UNAVAILABLE'
}

/** How far the indexing is, on the error stream: a bar on a terminal, else a line every few seconds. */
class ProgressBar {
  readonly #screen: Screen
  readonly #documents: Documents
  readonly #timer: NodeJS.Timeout
  #hasBar = false

  constructor(screen: Screen, documents: Documents) {
    this.#screen = screen
    this.#documents = documents
    this.#timer = setInterval(
      () => {
        void this.#draw()
      },
      screen.isTerminal ? DRAW_MS : LINE_MS,
    ).unref()
  }

  end(): void {
    clearInterval(this.#timer)
    if (this.#hasBar) process.stderr.write('\r\u001B[2K')
  }

  async #draw(): Promise<void> {
    const { progress, state, tasks_per_second: rate } = await this.#documents.stats()
    const { total, done } = progress
    if (state.queue_size === 0 || this.#screen.isJson) return
    const share = total === 0 ? 0 : done / total
    const line = `${done.toLocaleString('en')} of ${total.toLocaleString('en')} files, ${rate.toFixed(1)} tasks a second`
    if (!this.#screen.isTerminal) {
      this.#screen.err(line)
      return
    }
    const width = 30
    const full = Math.round(share * width)
    this.#hasBar = true
    process.stderr.write(`\r\u001B[2K${'█'.repeat(full)}${'░'.repeat(width - full)} ${line}`)
  }
}
