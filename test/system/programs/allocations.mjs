/** Runs jobs of one task, one after the other, and prints the bytes that each of them allocates. No garbage is collected meanwhile. */
import { blueprint } from 'impresario'
import { createOrchestrator } from 'impresario/embedded'

const JOBS = 500

const noop = blueprint('noop', { start: 'work' }, (state) => ({
  work: state.handler((context, actions) =>
    actions.dispatchTask({ type: 'noop', params: context.initialData, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

const orchestrator = createOrchestrator({ blueprints: [noop], settings: { storageUrl: 'memory:', logLevel: 'error' } })
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

await run(3_000)
globalThis.gc()
const before = process.memoryUsage().heapUsed
await run(JOBS)
console.log(Math.round((process.memoryUsage().heapUsed - before) / JOBS))
await orchestrator.stop()
