import { afterEach, describe, expect, test } from 'vitest'
import { startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'
import { connectClient } from './mcp-client.fixture.ts'

let server: TestServer

afterEach(() => server.server.stop())

describe.each(['2025-11-25', '2026-07-28'] as const)('MCP over HTTP, revision %s', (revision) => {
  test('[K-12] an assistant starts a job, waits for it and reads it', async () => {
    server = await startTestServer()
    const client = await connectClient(server, revision)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain('start_job')
    const started = await client.callTool({ name: 'start_job', arguments: { blueprint: 'ask' } })
    const { job_id: id } = started.structuredContent as { job_id: string }
    const waited = await client.callTool({ name: 'wait_job', arguments: { job_id: id } })
    expect(waited.structuredContent).toMatchObject({ job_id: id, status: 'waiting_for_human', is_ended: false })
    const decided = await client.callTool({ name: 'decide_approval', arguments: { job_id: id, decision: 'approved' } })
    expect(decided.isError).toBeUndefined()
    const ended = await client.callTool({ name: 'wait_job', arguments: { job_id: id } })
    expect(ended.structuredContent).toMatchObject({ status: 'finished', is_ended: true })
    await client.close()
  })
})
