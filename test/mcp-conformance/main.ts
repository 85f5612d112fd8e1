import { spawn } from 'node:child_process'
import { createServer } from '@impresario/server'
import { CONFORMANCE_BLUEPRINTS } from './blueprints.ts'
import { SCENARIOS } from './scenarios.ts'
import type { Scenario } from './scenarios.ts'

/*
 * Runs the conformance suite of the Model Context Protocol against a real server: `npm run check:mcp`. The suite needs a newer
 * Node than this project does, so npm brings both. CONFORMANCE_COMMAND names another way to start it.
 */

const COMMAND = process.env['CONFORMANCE_COMMAND']?.split(' ') ?? [
  'npm',
  'exec',
  '--yes',
  '--package=node@24.21.0',
  '--package=@modelcontextprotocol/conformance@0.2.0-alpha.12',
  '--',
  'conformance',
]

interface Outcome {
  readonly scenario: Scenario
  readonly isPassed: boolean
  readonly output: string
}

async function main(): Promise<number> {
  const server = createServer({
    blueprints: CONFORMANCE_BLUEPRINTS,
    settings: {
      storageUrl: process.env['STORAGE_URL'] ?? 'memory:',
      apiHost: '127.0.0.1',
      apiPort: 0,
      logLevel: 'error',
    },
  })
  const { address } = await server.start()
  const wanted = process.argv.slice(2)
  const scenarios = wanted.length === 0 ? SCENARIOS : SCENARIOS.filter(({ name }) => wanted.includes(name))
  let failures = 0
  try {
    for (const scenario of scenarios) {
      const { isPassed, output } = await check(`${address}/mcp`, scenario)
      if (!isPassed) failures += 1
      say(`${isPassed ? 'passed' : 'FAILED'} ${scenario.revision ?? 'extension '} ${scenario.name}`)
      if (!isPassed) say(output)
    }
  } finally {
    await server.stop()
  }
  say(`${scenarios.length - failures} of ${scenarios.length} scenarios passed`)
  return failures === 0 ? 0 : 1
}

async function check(url: string, scenario: Scenario): Promise<Outcome> {
  const [program = '', ...given] = COMMAND
  const revision = scenario.revision === undefined ? [] : ['--spec-version', scenario.revision]
  const child = spawn(program, [...given, 'server', '--url', url, '--scenario', scenario.name, ...revision], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (piece: Buffer) => {
      output += piece.toString('utf8')
    })
  }
  const code = await new Promise<number | null>((resolve) => {
    child.once('close', resolve)
  })
  return { scenario, isPassed: code === 0, output }
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

process.exitCode = await main()
