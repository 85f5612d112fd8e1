/**
 * Runs jobs of one task, one after the other. Prints the bytes that each of them allocates, while nothing is collected, or, as `old` on a
 * file, the bytes that each of them leaves in the old generation when only the young one is collected.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getHeapSpaceStatistics } from 'node:v8'
import { blueprint } from 'impresario'
import { createOrchestrator } from 'impresario/embedded'

const JOBS = 500
const isOld = process.argv[2] === 'old'
const directory = mkdtempSync(join(tmpdir(), 'impresario-allocations-'))

const noop = blueprint('noop', { start: 'work' }, (state) => ({
  work: state.handler((context, actions) =>
    actions.dispatchTask({ type: 'noop', params: context.initialData, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

const settings = { storageUrl: isOld ? `file:${directory}` : 'memory:', logLevel: 'error' }
const orchestrator = createOrchestrator({ blueprints: [noop], settings })
await orchestrator.start()
const client = orchestrator.client()
const transport = orchestrator.localTransport()
const { signal } = new AbortController()
await transport.register({ worker_id: 'w', supported_skills: [{ name: 'noop' }], max_concurrent_tasks: 4 })

async function run(jobs) {
  for (let job = 0; job < jobs; job += 1) {
    await client.start('noop', {})
    const { tasks } = await transport.poll('w', { limit: 4, timeoutMs: 60_000 }, signal)
    await transport.results(
      'w',
      tasks.map(({ task_id, job_id }) => ({ task_id, job_id, worker_id: 'w', status: 'success', data: {} })),
    )
  }
}

/** What is young and alive is old after two collections. */
function oldBytes() {
  globalThis.gc({ type: 'minor' })
  globalThis.gc({ type: 'minor' })
  const spaces = getHeapSpaceStatistics().filter(({ space_name: name }) => /^(old|large_object)_space$/.test(name))
  return spaces.reduce((sum, { space_used_size: bytes }) => sum + bytes, 0)
}

async function runAndCollect() {
  await run(50)
  await orchestrator.parts.storage.sync()
  return oldBytes()
}

await run(3_000)
globalThis.gc()
if (isOld) {
  const before = await runAndCollect()
  let after = before
  for (let rounds = 0; rounds < 20; rounds += 1) after = await runAndCollect()
  console.log(Math.round((after - before) / 1_000))
} else {
  const before = process.memoryUsage().heapUsed
  await run(JOBS)
  console.log(Math.round((process.memoryUsage().heapUsed - before) / JOBS))
}
await orchestrator.stop()
rmSync(directory, { recursive: true })
