import { createServer } from '@impresario/server'
import { describe, test } from 'vitest'
import { CONFORMANCE_BLUEPRINTS } from './mcp-conformance/blueprints.ts'
import { runSuite } from './mcp-conformance/suite.ts'
import { newStorageUrl } from './servers/storage-ground.ts'

describe.concurrent.each(['2025-11-25', '2026-07-28'] as const)('revision %s', (revision) => {
  test('[K-12] the conformance suite of the protocol passes against a real server', async ({ expect }) => {
    const settings = { storageUrl: newStorageUrl(), apiHost: '127.0.0.1', apiPort: 0, logLevel: 'error' } as const
    const server = createServer({ blueprints: CONFORMANCE_BLUEPRINTS, settings })
    const { address } = await server.start()
    try {
      const { problems, output } = await runSuite(`${address}/mcp`, revision)
      expect(problems, output).toEqual([])
    } finally {
      await server.stop()
    }
  })
})
