/** Writes the results into the pages. Figures in the documentation are generated here and never written by hand. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chartOf } from './chart.ts'
import { tablesOf } from './report.ts'
import type { Contest } from './ranking.ts'

const DOCS = new URL('../../../docs/explain/', import.meta.url)
const BEGIN = '<!-- peers: begin, written by npm run bench:peers -->'
const END = '<!-- peers: end -->'

export function writePages(contest: Contest): void {
  const page = fileURLToPath(new URL('performance.md', DOCS))
  const figures = `![End-to-end throughput, diamonds and idle latency of Impresario and its peers](performance-peers.svg)`
  const filled = filledIn(readFileSync(page, 'utf8'), `${figures}\n\n${tablesOf(contest)}`)
  writeFileSync(fileURLToPath(new URL('performance-peers.svg', DOCS)), chartOf(contest))
  writeFileSync(fileURLToPath(new URL('performance-peers.json', DOCS)), `${JSON.stringify(contest, short, 2)}\n`)
  writeFileSync(page, filled)
}

/** The page with the text between the two marks replaced. */
export function filledIn(page: string, content: string): string {
  const from = page.indexOf(BEGIN)
  const to = page.indexOf(END)
  if (from === -1 || to < from) throw new Error(`The page lacks the marks "${BEGIN}" and "${END}".`)
  return `${page.slice(0, from + BEGIN.length)}\n\n${content}\n\n${page.slice(to)}`
}

function short(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value
}
