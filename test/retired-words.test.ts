import { readFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

interface Retired {
  /** Tested against each identifier, and against the name of each file. */
  readonly word: RegExp
  readonly instead: string
  /** Only under these paths; without it everywhere. */
  readonly under?: RegExp
  /** Identifiers that are stored, sent or defined by others, and stay. */
  readonly except?: RegExp
}

/** Words that stood for several ideas, or a second word for one: see docs/reference/glossary.md. */
const RETIRED: readonly Retired[] = [
  { word: /^(Hands|hands\.ts)$/, instead: 'SharedCapacity' },
  { word: /^(Calm|calm\.ts)$/, instead: 'EmptyShards', under: /storage-redis/ },
  { word: /convoy/i, instead: 'GroupCommit' },
  { word: /nearness/i, instead: 'shardSuffix' },
  { word: /^(Rota|rota|rota\.ts)$/, instead: 'PollRotation' },
  { word: /^(Face|face|\w+Face)$/, instead: 'Frontend or HttpParts' },
  { word: /^(\w*[a-z])?Place$/, instead: 'Placement, ParkedPoll, or what it is the place of', except: /^inPlace$/ },
  { word: /RouteContract|route-contract|worker-contracts/, instead: 'route() and RouteDescription' },
  { word: /^createWorker$/, instead: 'newWorkerRecord', under: /^packages\/(core|engine|simulator)\// },
  { word: /shelf|shelves/i, instead: 'registry' },
  { word: /BlueprintLibrary|blueprint-library/, instead: 'registry' },
  { word: /^(Mov(able|ed)[A-Z]?\w*|Move(Mark|Options|Progress|Report)|movable-.*|moved-.*)$/, instead: 'transfer' },
  {
    word: /^(nextTurn|inTurns?|nextInTurn|LaneTurns|planTurns|takesTurns|turnGiven)$/,
    instead: 'rotation, or nextTick',
  },
  { word: /^standing/, instead: 'ownership', under: /^packages\/engine\/src\/workers\// },
]

/** Files of the repository that hold our own code. */
const FILES = execFileSync(
  'git',
  ['ls-files', '-co', '--exclude-standard', 'packages', 'apps', 'bench', 'examples', 'test'],
  {
    cwd: ROOT,
    encoding: 'utf8',
  },
)
  .split('\n')
  .filter((path) => /\.(?:ts|mts|mjs|lua)$/.test(path) && !path.endsWith('retired-words.test.ts'))

/** Names in code, without comments and texts. */
function identifiersOf(source: string): ReadonlySet<string> {
  const code = source
    .replaceAll(/\/\*[\s\S]*?\*\//g, ' ')
    .replaceAll(/(^|[^:'"`])\/\/.*$/gm, '$1')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''")
  return new Set(code.match(/[A-Za-z_$][\w$]*/g))
}

const found = FILES.flatMap((path) => {
  const names = [path.split('/').at(-1) ?? '', ...identifiersOf(read(path))]
  return names.flatMap((name) =>
    RETIRED.filter(({ word, under, except }) => {
      if (under?.test(path) === false || except?.test(name) === true) return false
      return word.test(name)
    }).map(({ instead }) => `${path}: "${name}" is retired, write ${instead}`),
  )
})

function read(path: string): string {
  try {
    return readFileSync(join(ROOT, path), 'utf8')
  } catch {
    // Removed, and not yet committed.
    return ''
  }
}

describe('retired words', () => {
  test('occur in no name', () => {
    expect(found).toEqual([])
  })

  test('are looked for in names alone', () => {
    const names = identifiersOf("const a = 'Hands' // Hands\n/* Hands */ class Shelf {}")
    expect([...names]).toEqual(['const', 'a', 'class', 'Shelf'])
  })
})
