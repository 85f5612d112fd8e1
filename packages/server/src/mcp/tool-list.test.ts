import type { Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Chance } from '../fuzz/chance.fixture.ts'
import { ODD_VALUES } from '../fuzz/hostile.fixture.ts'
import { sample } from '../fuzz/schema-sampler.fixture.ts'
import type { SchemaNode } from '../fuzz/schema-sampler.fixture.ts'
import { startTestServer } from '../server.fixture.ts'
import type { TestServer } from '../server.fixture.ts'
import { connectClient } from './mcp-client.fixture.ts'

let server: TestServer
let client: Client

beforeAll(async () => {
  server = await startTestServer()
  client = await connectClient(server, '2026-07-28')
})
afterAll(async () => {
  await client.close()
  await server.server.stop()
})

test('[K-12] the list of tools is short, in a stable order, and complete', async () => {
  const { tools } = await client.listTools()
  // English and JSON have about four bytes in a token; three is on the safe side.
  expect(Buffer.byteLength(JSON.stringify(tools)) / 3).toBeLessThan(8_000)
  const own = tools.filter(({ outputSchema }) => outputSchema !== undefined)
  expect(own.map(({ name }) => name)).toEqual([
    'search',
    'fetch',
    'list_jobs',
    'get_job',
    'start_job',
    'wait_job',
    'manage_job',
    'list_approvals',
    'decide_approval',
    'list_blueprints',
    'list_automations',
    'get_automation',
    'create_automation',
    'update_automation',
    'manage_automation',
    'list_runs',
    'get_run',
    'cancel_run',
    'publish_event',
    'list_tools',
  ])
  for (const { annotations, description } of own) {
    expect(annotations?.readOnlyHint).toBeTypeOf('boolean')
    expect(description).not.toBe('')
  }
})

test('[K-12] [H-01] every tool answers generated inputs, good and bad, without an error of its own', async () => {
  const { tools } = await client.listTools()
  const id = await server.createJob('ask')
  const chance = new Chance(12)
  const known = { job_id: [id], blueprint: ['ask'] }
  const resolve = (): SchemaNode => ({})
  const wrong: string[] = []
  for (const { name, inputSchema } of tools) {
    for (let round = 0; round < 12; round++) {
      const given = sample(inputSchema as SchemaNode, { chance, known, resolve }) as Record<string, unknown>
      const [field] = chance.isTrue(0.5) ? [] : Object.keys(given)
      if (field !== undefined) given[field] = chance.pick(ODD_VALUES)
      if (name === 'wait_job') given['seconds'] = 0
      if (name === 'ask' || name === 'echo' || name === 'fan' || name === 'flaky') break
      const found = await answerOf(name, given)
      if (found !== undefined) wrong.push(`${name} ${JSON.stringify(given).slice(0, 300)}: ${found}`)
    }
  }
  expect(wrong).toEqual([])
})

/** What is wrong with the answer: an error of the protocol, or one that tells of the inside. */
async function answerOf(name: string, given: Record<string, unknown>): Promise<string | undefined> {
  try {
    const result = await client.callTool({ name, arguments: given })
    const text = JSON.stringify(result.content)
    return /INTERNAL|Internal error|\bat .*\.ts:|\/packages\//.test(text) ? text.slice(0, 300) : undefined
  } catch (error) {
    // A body with a prototype in it is turned away before any tool sees it.
    const isTurnedAway = JSON.stringify(given).includes('"prototype"') && String(error).includes('INVALID_JSON')
    return isTurnedAway ? undefined : String(error).slice(0, 300)
  }
}
