/**
 * The index after any number of crashes is what a fresh one would be: the process that watches a folder dies at random while
 * files come, change, move and go, and is started again.
 */
import { createHash } from 'node:crypto'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { viewIndex } from '@impresario/documents'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chanceOf } from './chance.fixture.ts'
import { Victim } from './victim.fixture.ts'

const SEED = Number(process.env['KILL_SEED'] ?? Date.now() % 1_000_000)
const KILLS = Number(process.env['DOCUMENT_KILLS'] ?? 5)
const FILES = 200

const CLI = fileURLToPath(new URL('../../apps/cli/dist/main.js', import.meta.url))
const WORDS =
  'договор аренда поставка квартал отчёт система документ running reports delivered agreement quarterly'.split(' ')

let base = ''
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'impresario-documents-kill-'))
})
afterAll(async () => {
  await rm(base, { recursive: true, force: true })
})

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Does something to a file, as people and programs do. */
async function disturb(folder: string, chance: () => number): Promise<void> {
  const part = (): string => join(folder, `part${Math.floor(chance() * 6)}`)
  const name = (): string => join(part(), `file${Math.floor(chance() * FILES)}.txt`)
  const text = Array.from({ length: 30 }, () => WORDS[Math.floor(chance() * WORDS.length)]).join(' ')
  const path = name()
  const kind = chance()
  if (kind < 0.6) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
  } else if (kind < 0.62) {
    // A folder as a whole, into a place that is free or empty.
    await rename(dirname(path), part()).catch(() => undefined)
  } else if (kind < 0.8) await rm(path, { force: true })
  else await rename(path, name()).catch(() => undefined)
}

/** Everything that a search can see: the files with their content, and every term with its place. */
function contentsOf(directory: string): { readonly files: string; readonly terms: string; readonly count: number } {
  const db = new DatabaseSync(join(directory, 'documents.db'))
  try {
    db.exec("INSERT INTO terms(terms) VALUES ('integrity-check')")
    db.exec('CREATE VIRTUAL TABLE temp.places USING fts5vocab(main, terms, instance)')
    const files = db
      .prepare(
        `SELECT f.path, f.status, f.kind, f.title, f.hash, f.text_chars, hex(t.packed) AS packed FROM files f
         LEFT JOIN texts t ON t.id = f.id WHERE f.gone_at IS NULL ORDER BY f.path`,
      )
      .all()
    const terms = db
      .prepare(
        `SELECT f.path, p.term, p.col, p.offset FROM temp.places p LEFT JOIN files f ON f.id = p.doc
         ORDER BY f.path, p.col, p.offset, p.term`,
      )
      .all()
    const hash = (rows: unknown): string => createHash('sha256').update(JSON.stringify(rows)).digest('hex')
    return { files: JSON.stringify(files, null, 1), terms: hash(terms), count: files.length }
  } finally {
    db.close()
  }
}

async function untilSettled(directory: string, expected: number, victim: Victim): Promise<void> {
  for (let quiet = 0; quiet < 4;) {
    if (!victim.isRunning) throw new Error(`It does not run: ${victim.output}`)
    await pause(250)
    if (!existsSync(join(directory, 'documents.db'))) continue
    const view = viewIndex(directory)
    const { byStatus, documents } = view.counts()
    view.close()
    const isSettled = byStatus.pending + byStatus.running + byStatus.retry === 0 && documents === expected
    quiet = isSettled ? quiet + 1 : 0
  }
}

test(
  `[L-06] after ${KILLS} kills while files come and go, the index equals a fresh one (seed ${SEED})`,
  { timeout: 900_000, retry: 0 },
  async () => {
    const chance = chanceOf(SEED)
    const folder = join(base, 'folder')
    const data = join(base, 'data')
    for (let part = 0; part < 5; part += 1) await mkdir(join(folder, `part${part}`), { recursive: true })
    for (let index = 0; index < FILES; index += 1) await disturb(folder, chance)
    // No rescan helps here: every event counts.
    const config = join(base, 'documents.yaml')
    await writeFile(config, 'watch:\n  rescan: 24h\n')
    const victim = new Victim([CLI, 'documents', 'watch', folder, '--data', data, '--config', config], {})
    victim.start()
    for (let kill = 0; kill < KILLS; kill += 1) {
      // Every second time it is killed while it starts, else while it works.
      const isStarting = kill % 2 === 1
      if (!isStarting) {
        while (!victim.output.includes('Watching.')) await disturb(folder, chance)
      }
      const end = Date.now() + 500 + chance() * 2_500
      while (Date.now() < end) {
        await disturb(folder, chance)
        await pause(chance() * 20)
      }
      await victim.kill()
      victim.output = ''
      victim.start()
    }
    for (let index = 0; index < 50; index += 1) await disturb(folder, chance)
    const left = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.txt'))
    await untilSettled(data, left.length, victim)
    await victim.stop()
    const fresh = join(base, 'fresh')
    execFileSync(process.execPath, [CLI, 'documents', 'add', folder, '--data', fresh, '--json'], { stdio: 'ignore' })
    const [after, anew] = [contentsOf(data), contentsOf(fresh)]
    expect(after.count).toBe(left.length)
    expect(after.files).toBe(anew.files)
    expect(after.terms).toBe(anew.terms)
  },
)
