/** The results as a picture: bars, one row of panels for each league. Readable on light and on dark pages. */
import type { League } from './contestant.ts'
import type { FigureName } from './match.ts'
import { LEAGUES } from './plan.ts'
import { rowsOf } from './ranking.ts'
import type { Contest, Row } from './ranking.ts'

const WIDTH = 1000
const NAMES_WIDTH = 210
const GAP = 24
const BAR_HEIGHT = 16
const ROW_HEIGHT = 22
const HEAD_HEIGHT = 60
const LEAGUE_HEIGHT = 34
/** Beside the longest bar, for its number. */
const NUMBER_WIDTH = 56

const PANELS: readonly { readonly title: string; readonly name: FigureName; readonly digits: number }[] = [
  { title: 'end to end, jobs/s', name: 'endToEndPerS', digits: 0 },
  { title: 'diamonds/s', name: 'diamondsPerS', digits: 0 },
  { title: 'idle start p50, ms (less is better)', name: 'startP50Ms', digits: 1 },
]
const PANEL_WIDTH = (WIDTH - NAMES_WIDTH - GAP * PANELS.length) / PANELS.length

const TITLES: Readonly<Record<League, string>> = {
  embedded: 'Embedded',
  'redis-everysec': 'Redis, everysec',
  'redis-always': 'Redis, always',
  postgres: 'PostgreSQL',
}

const STYLE = `
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.league { font-size: 13px; font-weight: 600 }
.head, .none { fill: #59636e }
.own { font-weight: 600 }
.bar { fill: #b4bcc6 }
.bar.own { fill: #c2410c }
.line { stroke: #d1d9e0 }
.page { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .head, .none { fill: #9198a1 }
  .bar { fill: #59636e }
  .bar.own { fill: #f2884b }
  .line { stroke: #3d444d }
  .page { fill: #0d1117 }
}`

export function chartOf(contest: Contest): string {
  const leagues = LEAGUES.map((league) => ({ league, rows: rowsOf(contest.matches, league) })).filter(
    ({ rows }) => rows.length > 0,
  )
  const parts: string[] = [text(0, 22, 'Impresario and its peers, each in its own class', 'title')]
  for (const [index, { title }] of PANELS.entries()) parts.push(text(panelX(index), HEAD_HEIGHT - 10, title, 'head'))
  let y = HEAD_HEIGHT
  for (const { league, rows } of leagues) {
    parts.push(`<path class="line" d="M0 ${y}H${WIDTH}"/>`, text(0, y + 22, TITLES[league], 'league'))
    parts.push(...bars(rows, y + LEAGUE_HEIGHT))
    y += LEAGUE_HEIGHT + rows.length * ROW_HEIGHT + 8
  }
  const height = y + 8
  const frame = `viewBox="-16 -8 ${WIDTH + 32} ${height + 8}" width="${WIDTH + 32}" height="${height + 8}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${frame} role="img" aria-label="${summary(leagues.length)}">
<style>${STYLE}
</style>
<rect class="page" x="-16" y="-8" width="${WIDTH + 32}" height="${height + 8}"/>
${parts.join('\n')}
</svg>
`
}

function summary(leagues: number): string {
  return `Bars in ${leagues} classes of storage: end-to-end jobs per second, diamonds per second, idle latency.`
}

function panelX(index: number): number {
  return NAMES_WIDTH + GAP + index * (PANEL_WIDTH + GAP)
}

/** Ours first, always in the same order, then the peers, best first. */
function bars(rows: readonly Row[], top: number): readonly string[] {
  const speed = ({ figures }: Row): number => figures.endToEndPerS?.value ?? 0
  const own = rows.filter(({ isOwn }) => isOwn).sort((a, b) => a.name.localeCompare(b.name))
  const sorted = [...own, ...rows.filter(({ isOwn }) => !isOwn).sort((a, b) => speed(b) - speed(a))]
  return sorted.flatMap((row, line) => {
    const y = top + line * ROW_HEIGHT
    const name = row.isOwn ? row.title : `${row.title}, ${row.variant}`
    const panels = PANELS.flatMap(({ name: figure, digits }, index) => {
      const value = row.figures[figure]?.value
      const most = Math.max(...rows.map(({ figures }) => figures[figure]?.value ?? 0))
      return value === undefined
        ? [text(panelX(index), y + 12, '–', 'none')]
        : bar({ x: panelX(index), y, share: value / most, label: number(value, digits), isOwn: row.isOwn })
    })
    return [text(0, y + 12, name, row.isOwn ? 'own' : ''), ...panels]
  })
}

interface Bar {
  readonly x: number
  readonly y: number
  /** Of the longest one of its panel. */
  readonly share: number
  readonly label: string
  readonly isOwn: boolean
}

function bar({ x, y, share, label, isOwn }: Bar): readonly string[] {
  const width = Math.max(1, share * (PANEL_WIDTH - NUMBER_WIDTH)).toFixed(1)
  const own = isOwn ? ' own' : ''
  return [
    `<rect class="bar${own}" x="${x.toFixed(1)}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="2"/>`,
    text(x + Number(width) + 6, y + 12, label, own.trim()),
  ]
}

function number(value: number, digits: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits })
}

function text(x: number, y: number, content: string, kind: string): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<text x="${x.toFixed(1)}" y="${y}"${kind === '' ? '' : ` class="${kind}"`}>${escaped}</text>`
}
