import type { Job } from '@impresario/core'
import { expect, test } from 'vitest'
import { JobMemory } from './job-memory.ts'

function aJob(id: string, initialData: Job['initialData'] = {}): Job {
  return {
    id,
    blueprint: 'press',
    blueprintVersion: 1,
    client: { id: 'client' },
    status: 'running',
    state: 'start',
    visit: 1,
    failures: 0,
    initialData,
    stateHistory: {},
    branches: {},
    priority: 0,
    depth: 0,
    trail: [],
    createdAt: 1,
    updatedAt: 1,
  }
}

test('[C-10] jobs are remembered within a bound of bytes, the newest of them, and none that is large', () => {
  const memory = new JobMemory()
  // 30 kB of text that takes twice as much.
  for (let index = 0; index < 1_000; index += 1) memory.keep(aJob(`j${index}`, { text: 'x'.repeat(30_000) }), 1)
  expect(memory.bytes).toBeLessThan(17_000_000)
  expect(memory.get('j0')).toBeUndefined()
  expect(memory.get('j999')?.version).toBe(1)
  memory.keep(aJob('j999', { many: Array.from({ length: 2_000 }, () => ({})) }), 2)
  expect(memory.get('j999')).toBeUndefined()
  for (let index = 0; index < 1_000; index += 1) memory.forget(`j${index}`)
  expect(memory.bytes).toBe(0)
})
