import { blueprint } from '@impresario/core'
import { createOrchestrator } from '@impresario/server/embedded'
import { createWorker } from '@impresario/worker'

/*
 * One instance of `scale.ts`: an orchestrator, a worker, and as many open jobs as it is told, all in this process. A new job is
 * started for each that is done. Says how many are done when it is asked.
 */

const [url = '', name = '', open = '100'] = process.argv.slice(2)
const type = `noop-${name}`

const noop = blueprint(`noop-${name}`, { start: 'work' }, (state) => ({
  work: state.handler((context, actions) =>
    actions.dispatchTask({ type, params: context.initialData, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

const orchestrator = createOrchestrator({
  blueprints: [noop],
  settings: { storageUrl: url, logLevel: 'error', instanceId: name },
})
await orchestrator.start()
const client = orchestrator.client()

const waiting = new Map<number, () => void>()
let done = 0

const quiet = (): void => undefined
const worker = createWorker({
  transport: orchestrator.localTransport(),
  id: `worker-${name}`,
  concurrency: 100,
  log: { debug: quiet, info: quiet, warn: quiet, error: console.error },
})
worker.task(type, ({ lane }) => {
  done += 1
  waiting.get(Number(lane))?.()
  return {}
})
await worker.start()

async function run(lane: number): Promise<never> {
  for (;;) {
    const ended = new Promise<void>((resolve) => {
      waiting.set(lane, resolve)
    })
    await client.start(`noop-${name}`, { lane })
    await ended
  }
}

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ done, cpuMs: (user + system) / 1_000 })
})
for (let lane = 0; lane < Number(open); lane += 1) void run(lane)
process.send?.('ready')
