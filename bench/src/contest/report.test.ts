import { expect, test } from 'vitest'
import { chartOf } from './chart.ts'
import { CONTEST } from './contest.fixture.ts'
import { filledIn } from './pages.ts'
import { tablesOf } from './report.ts'

test('ratios are ours to the peer, of spans the other way round, from the rounds that nobody disturbed', () => {
  const line = tablesOf(CONTEST)
    .split('\n')
    .find((text) => text.startsWith('| peer <1.0>, file | 3.0'))
  expect(line).toBe('| peer <1.0>, file | 3.0 / 0.50 | – | 4.0 / 0.50 | – | – | – | – | – |')
})

test('a figure that was disturbed in every round says so', () => {
  const tables = tablesOf(CONTEST)
  expect(tables).toMatch(/\| peer <1\.0>, file \| SQLite \| – \| – \| 1,000 \| 4\.0 ! \/ – \|/)
})

test('who failed is in the table as one who failed', () => {
  expect(tablesOf(CONTEST)).toContain('broken <1.0>, file (failed 1 ×)')
})

test('the chart has a bar for each figure and no text that would break it', () => {
  const chart = chartOf(CONTEST)
  expect(chart.match(/<rect class="bar/g)).toHaveLength(6)
  expect(chart).toContain('peer &lt;1.0>')
  expect(chart).toContain('prefers-color-scheme: dark')
  expect(chart).not.toContain('NaN')
})

test('figures are written between the marks, again and again, and nowhere else', () => {
  const begin = '<!-- peers: begin, written by npm run bench:peers -->'
  const page = `before\n${begin}\nold\n<!-- peers: end -->\nafter\n`
  const once = filledIn(page, 'new')
  expect(once).toBe(`before\n${begin}\n\nnew\n\n<!-- peers: end -->\nafter\n`)
  expect(filledIn(once, 'new')).toBe(once)
  expect(() => filledIn('no marks', 'new')).toThrow(/marks/)
})
