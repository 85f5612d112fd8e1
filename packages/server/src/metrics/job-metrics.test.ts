import { blueprint } from '@impresario/core'
import { createWorker } from '@impresario/worker'
import { expect, onTestFinished, test } from 'vitest'
import { newStorageUrl } from '../../../../test/servers/storage-ground.ts'
import { createOrchestrator } from '../orchestrator.ts'

const asking = (type: string, params = {}) =>
  blueprint(type, { start: 'ask' }, (state) => ({
    ask: state.handler((_context, actions) => actions.dispatchTask({ type, params, transitions: { success: 'done' } })),
    done: state.end(),
  }))

test('[I-03] tasks that reach a worker with what they need loaded are counted, by what that is', async () => {
  const blueprints = [asking('warm'), asking('cold'), asking('modelled', { model: 'large-v3' })]
  const settings = { storageUrl: newStorageUrl(), logLevel: 'silent' } as const
  const orchestrator = createOrchestrator({ blueprints, settings })
  await orchestrator.start()
  onTestFinished(() => orchestrator.stop())
  const worker = createWorker({ transport: orchestrator.localTransport() })
  for (const { name } of blueprints) worker.task(name, () => ({}))
  worker.setHot('warm')
  worker.setHot('large-v3')
  await worker.start()
  onTestFinished(() => worker.stop())
  const client = orchestrator.client()
  const { dispatcher } = orchestrator.engine
  await expect.poll(() => dispatcher.worker(worker.id)?.hotSkills).toContain('warm')
  for (const { name } of blueprints) await (await client.start(name, {})).result()
  const lines = orchestrator.parts.metrics.text().split('\n')
  expect(lines.filter((line) => line.startsWith('orchestrator_tasks_hot_dispatched_total'))).toEqual([
    'orchestrator_tasks_hot_dispatched_total{blueprint="warm",kind="skill"} 1',
    'orchestrator_tasks_hot_dispatched_total{blueprint="modelled",kind="model"} 1',
  ])
})
