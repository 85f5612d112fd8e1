import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { MUST_RUN, NOT_OFFERED } from './scenarios.ts'
import type { Revision } from './scenarios.ts'

const PROGRAM = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
)

/** The suite imports one function that Node 20 does not have. The checks of servers never call it. */
const HOOKS = `
const SOURCE = "export * from 'node:fs'; export { globSync } from 'fs-glob:'"
const GLOB = "import fs from 'node:fs'; export const globSync = fs.globSync ?? (() => [])"
export async function resolve(specifier, context, next) {
  if (specifier === 'fs-glob:') return { url: 'fs-glob:', shortCircuit: true }
  const isSuite = context.parentURL?.includes('/@modelcontextprotocol/conformance/') === true
  return specifier === 'fs' && isSuite ? { url: 'fs-whole:', shortCircuit: true } : next(specifier, context)
}
export async function load(url, context, next) {
  if (url === 'fs-whole:') return { format: 'module', shortCircuit: true, source: SOURCE }
  if (url === 'fs-glob:') return { format: 'module', shortCircuit: true, source: GLOB }
  return next(url, context)
}`
const asUrl = (source: string): string => `data:text/javascript,${encodeURIComponent(source)}`
const LOADER = asUrl(`import { register } from 'node:module'; register(${JSON.stringify(asUrl(HOOKS))})`)

/** What one run of the suite found. */
export interface Verdict {
  readonly passed: readonly string[]
  /** What has to be mended, one line each; empty if the server conforms. */
  readonly problems: readonly string[]
  readonly output: string
}

/** Runs every scenario of the revision against the server; with the newer one also those of extensions. */
export async function runSuite(url: string, revision: Revision): Promise<Verdict> {
  // Without a revision the suite takes the newest, and the extensions with it.
  const which = revision === '2026-07-28' ? [] : ['--spec-version', revision]
  const child = spawn(
    process.execPath,
    ['--import', LOADER, PROGRAM, 'server', '--url', url, '--suite', 'all', ...which],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (piece: Buffer) => {
      output += piece.toString('utf8')
    })
  }
  await new Promise((resolve) => {
    child.once('close', resolve)
  })
  return verdictOf(output, revision)
}

function verdictOf(output: string, revision: Revision): Verdict {
  const summary = output.slice(Math.max(0, output.lastIndexOf('=== SUMMARY ===')))
  const outcomes = new Map<string, boolean>()
  for (const [, mark, name = ''] of summary.matchAll(/^([✓✗]) ([\w-]+):/gmu)) outcomes.set(name, mark === '✓')
  const passed = [...outcomes].filter(([, isPassed]) => isPassed).map(([name]) => name)
  const problems = [...outcomes].flatMap(([name, isPassed]) => {
    if (isPassed) return name in NOT_OFFERED ? [`${name} passes: take it out of NOT_OFFERED`] : []
    return name in NOT_OFFERED ? [] : [`${name} fails`]
  })
  const missing = MUST_RUN[revision].filter((name) => !outcomes.has(name)).map((name) => `${name} did not run`)
  return { passed, problems: [...problems, ...missing], output }
}
