/**
 * Measures the documents app as users run it: the command in a process of its own, with the processes that it starts.
 *
 *   npm run bench:documents                          all figures, about five minutes
 *   npm run bench:documents -- --files 500 --indexed 5000 --seconds 20
 *   npm run bench:documents -- --only query --storage postgres
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createDocuments, DocumentSearch, openPostgresIndex, parsedDocument } from '@impresario/documents'
import type { Indexer } from '@impresario/documents'
import { startPostgres } from '../backing.ts'
import { Prose } from './prose.ts'

const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '3000' },
    indexed: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '60' },
    only: { type: 'string', default: 'load,pace,query' },
    storage: { type: 'string', default: 'sqlite' },
  },
})
const WORDS = 200
const CLI = fileURLToPath(new URL('../../../apps/cli/dist/main.js', import.meta.url))
const base = mkdtempSync(join(tmpdir(), 'impresario-bench-documents-'))
const figures: Record<string, number> = {}

/** The command and everything that it started. */
class ProcessTree {
  readonly child: ChildProcess
  #mostKb = 0
  readonly #timer: NodeJS.Timeout

  constructor(args: readonly string[]) {
    this.child = spawn(process.execPath, [CLI, 'documents', ...args], { stdio: 'ignore' })
    this.#timer = setInterval(() => this.#look(), 100)
  }

  get mostMb(): number {
    return Math.round(this.#mostKb / 1_000)
  }

  /** Seconds of CPU so far, of those that are alive. */
  cpuSeconds(): number {
    const ticks = this.#pids().map((pid) => {
      const fields = read(`/proc/${pid}/stat`).split(') ')[1]?.split(' ') ?? []
      return Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
    })
    return ticks.reduce((sum, one) => sum + one, 0) / 100
  }

  async ended(): Promise<void> {
    if (this.child.exitCode === null) await once(this.child, 'exit')
    clearInterval(this.#timer)
  }

  async stop(): Promise<void> {
    this.child.kill('SIGTERM')
    await this.ended()
  }

  #look(): void {
    const kb = this.#pids().map((pid) => Number(/VmRSS:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? 0))
    this.#mostKb = Math.max(
      this.#mostKb,
      kb.reduce((sum, one) => sum + one, 0),
    )
  }

  #pids(): readonly number[] {
    const found = [this.child.pid ?? 0]
    // It grows while it is walked: children of children count too.
    for (const pid of found) {
      const children = read(`/proc/${pid}/task/${pid}/children`).trim().split(' ').filter(Boolean)
      found.push(...children.map(Number))
    }
    return found
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

function percentile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

function fill(folder: string, count: number, prose: Prose): void {
  for (let index = 0; index < count; index += 1) {
    const place = join(folder, `part${index % 50}`)
    mkdirSync(place, { recursive: true })
    writeFileSync(join(place, `file${index}.txt`), prose.document(WORDS))
  }
}

/** How long a folder of small documents takes, from the start of the command to its end. */
async function measureLoad(): Promise<void> {
  const count = Number(values.files)
  const folder = join(base, 'load')
  fill(folder, count, new Prose(1))
  const began = performance.now()
  const tree = new ProcessTree(['add', folder, '--data', join(base, 'load-data')])
  await tree.ended()
  const seconds = (performance.now() - began) / 1_000
  figures['load: documents a minute'] = Math.round((count / seconds) * 60)
  figures['load: most memory of all processes, MB'] = tree.mostMb
}

/** Files come at 100 a minute. When is each found, and what does that cost? */
async function measurePace(): Promise<void> {
  const folder = join(base, 'pace')
  const data = join(base, 'pace-data')
  mkdirSync(folder)
  const tree = new ProcessTree(['watch', folder, '--data', data])
  while (!readdirSync(base).includes('pace-data') || !readdirSync(data).includes('documents.db')) await pause(50)
  await pause(3_000)
  const index = new DocumentSearch(data)
  const prose = new Prose(2)
  const latencies: number[] = []
  const cpuBefore = tree.cpuSeconds()
  const began = performance.now()
  const files = Math.round((Number(values.seconds) * 100) / 60)
  for (let file = 0; file < files; file += 1) {
    const written = performance.now()
    writeFileSync(join(folder, `file${file}.txt`), `${prose.document(WORDS)} метка${file}`)
    while (index.search(`метка${file}`).hits.length === 0) await pause(5)
    latencies.push(performance.now() - written)
    await pause(Math.max(0, 600 - (performance.now() - written)))
  }
  const seconds = (performance.now() - began) / 1_000
  figures['100 a minute: event to searchable, p50 ms'] = Math.round(percentile(latencies, 0.5))
  figures['100 a minute: event to searchable, p95 ms'] = Math.round(percentile(latencies, 0.95))
  figures['100 a minute: CPU, percent of one core'] = Math.round(((tree.cpuSeconds() - cpuBefore) / seconds) * 100)
  figures['100 a minute: most memory of all processes, MB'] = tree.mostMb
  index.close()
  await tree.stop()
}

/** An index that the app has open, and how to close it. */
async function openIndex(): Promise<{ readonly indexer: Indexer; readonly close: () => Promise<void> }> {
  if (values.storage === 'postgres') {
    const backing = await startPostgres()
    const indexer = await openPostgresIndex({ url: backing.url, owner: 'bench' })
    const close = async (): Promise<void> => {
      await indexer.close()
      await backing.stop()
    }
    return { indexer, close }
  }
  if (values.storage !== 'sqlite') throw new Error('--storage takes sqlite or postgres.')
  const documents = createDocuments({ directory: join(base, 'query-data') })
  return { indexer: documents.indexer, close: () => documents.stop() }
}

/** Queries of one to three words over many documents, one after the other, as an app that is open answers them. */
async function measureQueries(): Promise<void> {
  const count = Number(values.indexed)
  const { indexer, close } = await openIndex()
  const prose = new Prose(3)
  const began = performance.now()
  for (let index = 0; index < count; index += 1) {
    const name = `file${index}.txt`
    const parsed = { kind: 'txt', title: '', text: prose.document(WORDS), isTruncated: false }
    const put = indexer.put(`/q/${name}`, { size: 1, mtimeMs: index, hash: name }, parsedDocument(name, parsed))
    if (index % 200 === 199) await put
  }
  figures[`${count} parsed documents into the index, s`] = Math.round((performance.now() - began) / 1_000)
  const timed = async (query: string, limit = 10): Promise<number> => {
    const asked = performance.now()
    await indexer.search(query, { limit })
    return performance.now() - asked
  }
  // The first one starts what the others find running.
  figures['first query, ms'] = Math.round(await timed(prose.query()))
  const times: number[] = []
  for (let query = 0; query < 500; query += 1) times.push(await timed(prose.query()))
  const often = prose.mostFrequent()
  const longest: number[] = []
  const held = monitorEventLoopDelay({ resolution: 1 })
  held.enable()
  for (const query of [often, `${often} path:q type:txt`, `${often.slice(0, 2)}*`]) {
    longest.push(await timed(query, 100))
  }
  held.disable()
  figures[`most frequent word over ${count} documents, longest ms`] = Math.round(Math.max(...longest))
  figures['longest time that it held up the process, ms'] = Math.round(held.max / 1e6)
  figures[`query over ${count} documents, p50 ms`] = Number(percentile(times, 0.5).toFixed(1))
  figures[`query over ${count} documents, p95 ms`] = Number(percentile(times, 0.95).toFixed(1))
  await close()
}

const only = values.only.split(',')
try {
  if (only.includes('load')) await measureLoad()
  if (only.includes('pace')) await measurePace()
  if (only.includes('query')) await measureQueries()
  for (const [name, value] of Object.entries(figures)) console.log(`${name.padEnd(52)} ${value.toLocaleString('en')}`)
} finally {
  rmSync(base, { recursive: true, force: true })
}
