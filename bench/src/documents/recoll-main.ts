/**
 * Holds the documents app against Recoll on the same files: which finds the document that a query was made from, and how long it
 * takes. Needs Recoll (`apt install recollcmd`) and a folder of texts of your own.
 *
 *   npm run bench:recoll -- <folder> [--queries 50]
 *
 * A query is three words of one document, none of them frequent. In half of the queries each word is replaced by another word of the
 * folder that begins in the same way: most often another form of it. No stemmer has a say in that.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { DocumentSearch } from '@impresario/documents'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { queries: { type: 'string', default: '50' } },
})
const CLI = fileURLToPath(new URL('../../../apps/cli/dist/main.js', import.meta.url))
const folder = resolve(positionals[0] ?? '.')
const base = mkdtempSync(join(tmpdir(), 'impresario-bench-recoll-'))
const BEST = 10

interface Query {
  readonly words: readonly string[]
  readonly path: string
  readonly isChanged: boolean
}

/** Words of four letters and more, of one script each, with the files that have them. */
function vocabularyOf(paths: readonly string[]): Map<string, Set<string>> {
  const words = new Map<string, Set<string>>()
  for (const path of paths) {
    for (const [word] of readFileSync(path, 'utf8')
      .toLowerCase()
      .matchAll(/[a-z]{4,}|[а-яё]{4,}/g)) {
      const files = words.get(word) ?? new Set()
      files.add(path)
      words.set(word, files)
    }
  }
  return words
}

/** Another word that is the same up to its last two letters, if the folder has one. */
function changed(word: string, vocabulary: ReadonlyMap<string, unknown>): string {
  const beginning = word.slice(0, Math.max(4, word.length - 2))
  for (const other of vocabulary.keys()) {
    if (other !== word && other.startsWith(beginning) && Math.abs(other.length - word.length) <= 2) return other
  }
  return word
}

function queriesFor(paths: readonly string[], count: number): readonly Query[] {
  const vocabulary = vocabularyOf(paths)
  const step = Math.max(1, Math.floor(paths.length / count))
  return paths
    .filter((_path, index) => index % step === 0)
    .slice(0, count)
    .map((path, index): Query => {
      const own = [...vocabulary].filter(([, files]) => files.has(path) && files.size >= 2 && files.size <= 20)
      const third = Math.floor(own.length / 3)
      const words = [0, 1, 2].flatMap((at) => own[Math.floor(third * (at + 0.5))]?.[0] ?? [])
      const isChanged = index % 2 === 1
      return { words: isChanged ? words.map((word) => changed(word, vocabulary)) : words, path, isChanged }
    })
    .filter(({ words }) => words.length === 3)
}

function timed<T>(work: () => T): { readonly value: T; readonly ms: number } {
  const began = performance.now()
  const value = work()
  return { value, ms: performance.now() - began }
}

function run(program: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 67_108_864 })
  if (status !== 0) throw new Error(`${program} failed: ${stderr.slice(-500)}`)
  return stdout
}

interface Finder {
  readonly name: string
  readonly find: (words: readonly string[]) => readonly string[]
}

function report({ name, find }: Finder, queries: readonly Query[]): void {
  const found = { same: 0, changed: 0 }
  const of = { same: 0, changed: 0 }
  const times: number[] = []
  for (const { words, path, isChanged } of queries) {
    const { value, ms } = timed(() => find(words))
    times.push(ms)
    const kind = isChanged ? 'changed' : 'same'
    of[kind] += 1
    if (value.slice(0, BEST).includes(path)) found[kind] += 1
  }
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1)
  console.log(
    `${name.padEnd(26)} as written ${found.same}/${of.same}, other forms ${found.changed}/${of.changed}, query p50 ${at(0.5)} ms, p95 ${at(0.95)} ms`,
  )
}

try {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const paths = names.filter((name) => /\.(?:txt|md)$/.test(name)).map((name) => join(folder, name))
  const queries = queriesFor(paths.toSorted(), Number(values.queries))
  console.log(`${paths.length} files, ${queries.length} queries`)

  const data = join(base, 'data')
  const ours = timed(() => run(process.execPath, [CLI, 'documents', 'add', folder, '--data', data, '--json']))
  const config = join(base, 'recoll')
  mkdirSync(config)
  writeFileSync(
    join(config, 'recoll.conf'),
    `topdirs = ${folder}\nindexstemminglanguages = english russian\nloglevel = 1\nskippedNames =\n`,
  )
  const theirs = timed(() => run('recollindex', ['-c', config, '-z']))
  console.log(`indexed in ${(ours.ms / 1_000).toFixed(1)} s, Recoll in ${(theirs.ms / 1_000).toFixed(1)} s`)

  const index = new DocumentSearch(data)
  report(
    { name: 'documents, in process', find: (words) => index.search(words.join(' ')).hits.map(({ path }) => path) },
    queries,
  )
  index.close()
  const command = (words: readonly string[]): readonly string[] => {
    const text = run(process.execPath, [CLI, 'documents', 'search', words.join(' '), '--data', data, '--json'])
    return (JSON.parse(text) as { readonly hits: readonly { readonly path: string }[] }).hits.map(({ path }) => path)
  }
  report({ name: 'documents, as a command', find: command }, queries)
  const recoll = (words: readonly string[]): readonly string[] =>
    run('recollq', ['-c', config, '-s', 'english russian', '-n', `0-${BEST}`, '-b', words.join(' ')])
      .split('\n')
      .map((line) => decodeURIComponent(line.trim().replace(/^file:\/\//, '')))
  report({ name: 'Recoll, as a command', find: recoll }, queries)
} finally {
  rmSync(base, { recursive: true, force: true })
}
