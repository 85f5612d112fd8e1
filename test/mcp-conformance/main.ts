import { createServer } from '@impresario/server'
import { CONFORMANCE_BLUEPRINTS } from './blueprints.ts'
import { runSuite } from './suite.ts'

/*
 * Runs the conformance suite of the Model Context Protocol against a real server and prints all that it says:
 * `npm run check:mcp`. STORAGE_URL chooses the storage.
 */

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
try {
  for (const revision of ['2025-11-25', '2026-07-28'] as const) {
    const { passed, problems, output } = await runSuite(`${address}/mcp`, revision)
    if (problems.length > 0) process.stdout.write(output)
    process.stdout.write(`${revision}: ${passed.length} scenarios passed\n`)
    for (const problem of problems) process.stdout.write(`${revision}: ${problem}\n`)
    if (problems.length > 0) process.exitCode = 1
  }
} finally {
  await server.stop()
}
