import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

/** How many requirements each section has; they are numbered from 01 without gaps. */
const SECTIONS = { A: 10, B: 14, C: 11, D: 5, E: 7, F: 5, G: 5, H: 8, I: 9, J: 6, K: 17, L: 7, M: 7 }
const IDS = Object.entries(SECTIONS).flatMap(([section, count]) =>
  Array.from({ length: count }, (_, index) => `${section}-${String(index + 1).padStart(2, '0')}`),
)

interface Row {
  readonly id: string
  readonly what: string
  readonly state: string
  readonly code: readonly string[]
  readonly tests: readonly string[]
}

function readRows(): readonly Row[] {
  const lines = readFileSync(join(ROOT, 'docs/requirements.md'), 'utf8').split('\n')
  return lines
    .filter((line) => /^\|\s*[A-Z]-\d/.test(line))
    .map((line) => {
      const [, id = '', what = '', state = '', code = '', tests = ''] = line
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim())
      return { id, what, state, code: pathsIn(code), tests: pathsIn(tests) }
    })
}

function pathsIn(cell: string): readonly string[] {
  return cell.split(/[\s,`]+/).filter((part) => part !== '')
}

/** The ids in brackets at the beginning of a title: `'[A-03] …'`, `'[A-03, B-01] …'`, `'[A-03] [B-01] …'`. */
function idsInTitles(source: string): readonly string[] {
  const titles = source.matchAll(/['"`]((?:\s*\[[A-Z]-\d+(?:[,\s]+[A-Z]-\d+)*\])+)/g)
  return [...titles].flatMap(([, brackets = '']) => brackets.match(/[A-Z]-\d+/g) ?? [])
}

/**
 * Defects of earlier orchestrators, which must not come back, are numbered from J-1 to J-22. The leading zero
 * distinguishes J-01, a requirement about files, from J-1, a defect.
 */
function isDefect(id: string): boolean {
  return /^J-(?:[1-9]|1\d|2[0-2])$/.test(id)
}

const rows = readRows()
const claims = rows.filter((row) => row.state !== 'open')

test('every requirement has exactly one row, in order', () => {
  expect(rows.map((row) => row.id)).toEqual(IDS)
})

test('every row is described and has a known state', () => {
  expect(rows.filter((row) => row.what === '' || !['built', 'partly', 'open'].includes(row.state))).toEqual([])
})

test('an open requirement claims nothing', () => {
  for (const row of rows.filter(({ state }) => state === 'open')) {
    expect({ id: row.id, code: row.code, tests: row.tests }).toEqual({ id: row.id, code: [], tests: [] })
  }
})

describe('what is claimed', () => {
  test.for(claims)('$id names code and tests that exist', (row) => {
    expect(row.code).not.toEqual([])
    expect(row.tests).not.toEqual([])
    expect([...row.code, ...row.tests].filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })

  test.for(claims)('$id stands in the title of a test that its row names', (row) => {
    const titled = row.tests.flatMap((path) => idsInTitles(readFileSync(join(ROOT, path), 'utf8')))
    expect(titled).toContain(row.id)
  })

  test.for(claims.filter(({ state }) => state === 'partly'))('$id says what is missing', (row) => {
    expect(row.what).toMatch(/\(.+\)/)
  })
})

/** Test files, and the conformance suite, whose test files have other names. */
function testFiles(): readonly string[] {
  return ['packages', 'apps', 'examples', 'test'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
      .filter((name) => !/\/(?:node_modules|dist)\//.test(name))
      .filter((name) => name.endsWith('.test.ts') || /^packages\/conformance\/src\/.*\.ts$/.test(name)),
  )
}

/**
 * Would satisfy a requirement by its title and never run. `skipIf` is for programs that a machine lacks, and fails with
 * `CI=true`.
 */
const NEVER_RUN = /\b(?:test|it|describe)(?:\.\w+)*\.(?:skip|todo|only|fails)\b/

test('no test is skipped for good, left to do, or the only one that runs', () => {
  const found = testFiles().filter(
    (file) => !file.endsWith('requirements.test.ts') && NEVER_RUN.test(readFileSync(join(ROOT, file), 'utf8')),
  )
  expect(found).toEqual([])
})

test('titles name requirements that exist', () => {
  const unknown = testFiles().flatMap((file) =>
    idsInTitles(readFileSync(join(ROOT, file), 'utf8'))
      .filter((id) => !IDS.includes(id) && !isDefect(id))
      .map((id) => `${file}: ${id}`),
  )
  expect(unknown).toEqual([])
})
