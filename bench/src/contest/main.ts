/**
 * The same work for our peers and for us, in one run, taking turns.
 *
 *   npm run bench:peers                                  everybody, two rounds; fills in docs/explain/performance.md
 *   npm run bench:peers -- --class redis                 one class: embedded, redis (or redis-everysec, redis-always), postgres
 *   npm run bench:peers -- --only bullmq,bee-queue       these peers, and ours in their leagues
 *   npm run bench:peers -- --rounds 1 --seconds 1        quicker and coarser
 *   npm run bench:peers -- --patience 0                  does not wait for a quiet machine (seconds, in all)
 *   npm run bench:peers -- --json results.json           everything that was measured
 *   npm run bench:peers -- --from results.json --write   writes the pages from an earlier run
 *
 * What leaves somebody out only prints its tables, unless `--write` says otherwise.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { parseArgs } from 'node:util'
import { postgresVersion, redisVersion } from '../backing.ts'
import { CONTESTANTS, OWN_NAMES } from '../contestants/index.ts'
import type { Contestant } from './contestant.ts'
import { runMatch } from './match.ts'
import type { MatchOptions } from './match.ts'
import { contestNode, install, versionOf } from './peer-home.ts'
import { chosenPeers, roundOf } from './plan.ts'
import type { Entry } from './plan.ts'
import { writePages } from './pages.ts'
import { tablesOf } from './report.ts'
import type { Contest, Match } from './ranking.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    class: { type: 'string', default: '' },
    rounds: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '2' },
    jobs: { type: 'string', default: '30000' },
    singles: { type: 'string', default: '150' },
    width: { type: 'string', default: '100' },
    patience: { type: 'string', default: '240' },
    json: { type: 'string', default: '' },
    from: { type: 'string', default: '' },
    write: { type: 'boolean', default: false },
    'no-write': { type: 'boolean', default: false },
  },
})

function optionsOf(node: string): MatchOptions {
  return {
    node,
    seconds: Number(values.seconds),
    jobsMax: Number(values.jobs),
    singles: Number(values.singles),
    width: Number(values.width),
    patience: { leftMs: Number(values.patience) * 1000 },
  }
}

function listed(text: string): readonly string[] {
  return text === '' ? [] : text.split(',')
}

function contestant(name: string): Contestant {
  const found = CONTESTANTS[name]
  const names = Object.keys(CONTESTANTS).join(', ')
  if (found === undefined) throw new Error(`There is no contestant "${name}": use ${names}.`)
  return found
}

/** With the installed versions, so they must be installed first. */
function titleOf(name: string): string {
  const { title, home } = contestant(name)
  return home === undefined
    ? title
    : `${title} ${home.packages.map((part) => versionOf(home.folder, part)).join(' / ')}`
}

async function play(entry: Entry, round: number, options: MatchOptions): Promise<Match> {
  const { name, variant } = entry
  const { durability, note, shape } = contestant(name).variants[variant] ?? { durability: '', shape: 'apart' }
  const about = { ...entry, round, title: titleOf(name), durability, shape, ...(note === undefined ? {} : { note }) }
  try {
    const figures = await runMatch(name, contestant(name), variant, options)
    console.error(`${label(entry)} ${JSON.stringify(figures, rounded)}`)
    return { ...about, figures }
  } catch (error) {
    const text = error instanceof Error ? `${error.message} ${causeOf(error)}` : String(error)
    console.error(`${label(entry)} FAILED: ${text}`)
    return { ...about, figures: {}, error: text }
  }
}

function label({ league, name, variant }: Entry): string {
  return `[${league}] ${name}/${variant}:`
}

function causeOf({ cause }: Error): string {
  return cause instanceof Error ? `(${cause.message})` : ''
}

function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value
}

async function hold(): Promise<Contest> {
  const node = contestNode()
  const own: readonly string[] = OWN_NAMES
  for (const name of listed(values.only)) contestant(name)
  const field = Object.fromEntries(Object.entries(CONTESTANTS).filter(([name]) => !own.includes(name)))
  const peers = chosenPeers(field, { classes: listed(values.class), only: listed(values.only) })
  if (peers.length === 0) throw new Error('Nobody is left: --class takes embedded, redis, postgres.')
  for (const { name } of peers) {
    const { home } = contestant(name)
    if (home !== undefined) install(home.folder, node)
  }
  const options = optionsOf(node)
  const begin = new Date()
  const matches: Match[] = []
  for (let round = 1; round <= Number(values.rounds); round += 1) {
    for (const entry of roundOf(peers, own)) matches.push(await play(entry, round, options))
  }
  const machine = { cores: cpus().length, processor: cpus()[0]?.model.trim() ?? '', kernel: release() }
  const programs = [`Node ${nodeVersion(node)}`, redisVersion(), postgresVersion()]
  const { seconds, width, singles } = options
  const took = { at: begin.toISOString(), minutes: (Date.now() - begin.getTime()) / 60_000 }
  return { ...took, machine, programs, rounds: Number(values.rounds), seconds, width, singles, matches }
}

function nodeVersion(node: string): string {
  return node === process.execPath ? process.versions.node : versionOf('node', 'node')
}

/** Type boundary for a file that this program wrote. */
function contestIn(file: string): Contest {
  return JSON.parse(readFileSync(file, 'utf8')) as Contest
}

const contest = values.from === '' ? await hold() : contestIn(values.from)
if (values.json !== '') writeFileSync(values.json, `${JSON.stringify(contest, rounded, 2)}\n`)
console.log(tablesOf(contest))
const isWhole = values.only === '' && values.class === '' && values.from === ''
if (!values['no-write'] && (values.write || isWhole)) writePages(contest)
if (contest.matches.some(({ error }) => error !== undefined)) process.exitCode = 1
