/** The results as Markdown. */
import type { League } from './contestant.ts'
import type { FigureName } from './match.ts'
import { LEAGUES } from './plan.ts'
import { DISTURBED_PERCENT, rowsOf } from './ranking.ts'
import type { Contest, Figure, Row } from './ranking.ts'

const LEAGUE_TITLES: Readonly<Record<League, string>> = {
  embedded: 'Embedded: no database beside it',
  'redis-everysec': 'Redis, `appendfsync everysec`: up to a second may be lost',
  'redis-always': 'Redis, `appendfsync always`: what was acknowledged is on disk',
  postgres: 'PostgreSQL, `synchronous_commit=on`: what was acknowledged is on disk',
}

/** All tables, with notes for readers. */
export function tablesOf(contest: Contest): string {
  const leagues = LEAGUES.map((league) => ({ league, rows: rowsOf(contest.matches, league) })).filter(
    ({ rows }) => rows.length > 0,
  )
  return [
    conditions(contest),
    '### How many times as good as each peer',
    ...ratioTable(leagues.flatMap(({ rows }) => rows)),
    ...leagues.flatMap(({ league, rows }) => [`### ${LEAGUE_TITLES[league]}`, figureTable(rows), notesOf(rows)]),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

function conditions({ at, minutes, machine, programs, rounds, seconds, width, singles }: Contest): string {
  const when = at.slice(0, 16).replace('T', ' ')
  return [
    `Measured ${when} UTC in ${Math.round(minutes)} minutes: ${programs.join(', ')}; ${machine.cores} cores (${machine.processor}),`,
    `Linux ${machine.kernel}. Rounds: ${rounds}. Each measure lets work come in for ${seconds} s with ${width} calls under way and`,
    `${width} handlers at once; ${singles} single jobs for the idle latency. \`!\`: others used more than ${DISTURBED_PERCENT} % of the machine`,
    'meanwhile, in every round.',
  ].join('\n')
}

interface Column {
  readonly title: string
  readonly cell: (row: Row) => string
}

function column(title: string, name: FigureName, digits = 0): Column {
  return { title, cell: ({ figures }) => shown(figures[name], digits) }
}

const COLUMNS: readonly Column[] = [
  { title: '', cell: nameOf },
  { title: 'durability', cell: ({ durability }) => durability },
  column('enqueue /s', 'enqueuePerS'),
  column('drain /s', 'drainPerS'),
  column('end to end /s', 'endToEndPerS'),
  {
    title: 'start p50 / p99 ms',
    cell: ({ figures: { startP50Ms, startP99Ms } }) => `${shown(startP50Ms, 1)} / ${shown(startP99Ms, 1)}`,
  },
  column('diamonds /s', 'diamondsPerS'),
  column('CPU ms/job', 'cpuMsPerJob', 2),
  {
    title: 'MiB server + worker',
    cell: ({ figures: { serverMiB, workerMiB } }) => `${shown(serverMiB, 0)} + ${shown(workerMiB, 0)}`,
  },
]

function figureTable(rows: readonly Row[]): string {
  return table(
    COLUMNS.map(({ title }) => title),
    [...rows].sort(ownFirst).map((row) => COLUMNS.map(({ cell }) => cell(row))),
  )
}

/** The peers stay in the order of their matches. */
function ownFirst(a: Row, b: Row): number {
  return Number(b.isOwn) - Number(a.isOwn) || (a.isOwn ? a.name.localeCompare(b.name) : 0)
}

function nameOf({ title, variant, isOwn, failures }: Row): string {
  const name = isOwn ? `**${title}**` : `${title}, ${variant}`
  return failures === 0 ? name : `${name} (failed ${failures} ×)`
}

function shown(figure: Figure | undefined, digits: number): string {
  if (figure === undefined) return '–'
  const text = figure.value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits })
  return figure.isDisturbed ? `${text} !` : text
}

/** The compared values. For durations and sizes less is better, so their ratio is inverted. */
const RATIOS: readonly { readonly title: string; readonly name: FigureName; readonly isLessBetter: boolean }[] = [
  { title: 'end to end', name: 'endToEndPerS', isLessBetter: false },
  { title: 'diamonds', name: 'diamondsPerS', isLessBetter: false },
  { title: 'idle start p50', name: 'startP50Ms', isLessBetter: true },
  { title: 'idle start p99', name: 'startP99Ms', isLessBetter: true },
  { title: 'enqueue', name: 'enqueuePerS', isLessBetter: false },
  { title: 'drain', name: 'drainPerS', isLessBetter: false },
  { title: 'CPU', name: 'cpuMsPerJob', isLessBetter: true },
]

function ratioTable(rows: readonly Row[]): readonly string[] {
  const peers = rows.filter(({ isOwn }) => !isOwn)
  if (peers.length === 0) return []
  const cells = peers.map((peer) => {
    const own = rows.filter(({ isOwn, league }) => isOwn && league === peer.league)
    return [
      nameOf(peer),
      ...RATIOS.map(({ name, isLessBetter }) => ratioCell(peer, own, name, isLessBetter)),
      memoryCell(peer, own),
    ]
  })
  return [
    'Each cell: Impresario as a library / Impresario as a server, divided by the peer in the same league of the same run. Above 1 is better than the peer; for spans, CPU and memory it is the peer that is divided.',
    table(['', ...RATIOS.map(({ title }) => title), 'memory'], cells),
  ]
}

function ratioCell(peer: Row, own: readonly Row[], name: FigureName, isLessBetter: boolean): string {
  return both(own, (row) => ratio(row.figures[name]?.value, peer.figures[name]?.value, isLessBetter))
}

function memoryCell(peer: Row, own: readonly Row[]): string {
  return both(own, (row) => ratio(memoryOf(row), memoryOf(peer), true))
}

function memoryOf({ figures: { serverMiB, workerMiB } }: Row): number | undefined {
  return serverMiB === undefined || workerMiB === undefined ? undefined : serverMiB.value + workerMiB.value
}

function both(own: readonly Row[], cell: (row: Row) => string): string {
  const cells = [...own].sort((a, b) => a.name.localeCompare(b.name)).map(cell)
  return cells.every((text) => text === '–') ? '–' : cells.join(' / ')
}

function ratio(ours: number | undefined, theirs: number | undefined, isLessBetter: boolean): string {
  if (ours === undefined || theirs === undefined) return '–'
  const value = isLessBetter ? theirs / ours : ours / theirs
  return value >= 10 ? value.toFixed(0) : value.toFixed(value >= 2 ? 1 : 2)
}

function notesOf(rows: readonly Row[]): string {
  return rows
    .filter(({ note, isOwn }) => note !== undefined && !isOwn)
    .map((row) => `- ${nameOf(row)}: ${row.note ?? ''}`)
    .join('\n')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}
