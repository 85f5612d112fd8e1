import { blueprint } from '@impresario/core'
import type { RunnableBlueprint } from '@impresario/core'
import { expect, test } from 'vitest'
import { testStorage } from '../../../../test/servers/test-storage.ts'
import { createOrchestrator } from '../orchestrator.ts'
import type { OrchestratorOptions } from '../orchestrator.ts'

const asking = blueprint('ask', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Go on?', transitions: { yes: 'ship', no: 'ship' } }),
  ),
  ship: state.end(),
}))
const sleeping = blueprint('doze', { start: 'doze' }, (state) => ({
  doze: state.handler((_context, actions) => actions.sleep('1d', { to: 'later' })),
  later: state.end(),
}))
const renamed = blueprint('ask', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Go on?', transitions: { yes: 'send' } }),
  ),
  send: state.end(),
}))

test('[A-09] a start warns of open jobs whose next states are gone, and of nothing when all of them are there', async () => {
  const storage = testStorage({ now: () => Date.now() })
  const lines: string[] = []
  let heard: (line: string) => void = () => undefined
  const note = (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    lines.push(message)
    heard([message, ...Object.values(fields).map(String)].join(' '))
  }
  const log: OrchestratorOptions['log'] = { debug: note, info: note, warn: note, error: note }
  const begin = async (blueprints: readonly RunnableBlueprint[]) => {
    const orchestrator = createOrchestrator({ blueprints, storage, log, settings: { instanceId: 'one' } })
    await orchestrator.start()
    return orchestrator
  }
  const first = await begin([asking, sleeping])
  for (const name of ['ask', 'ask', 'doze']) {
    const job = await first.client().start(name, {})
    for await (const { status } of job.watch()) if (status.startsWith('waiting')) break
  }
  await first.stop()
  expect(lines.filter((line) => line.includes('open job'))).toEqual([])
  const warned = new Promise<string>((resolve) => {
    heard = (line) => {
      if (line.includes('no longer have')) resolve(line)
    }
  })
  const second = await begin([renamed, sleeping])
  expect(await warned).toMatch(/^2 open jobs need states that the blueprints no longer have ask: ship put the states/)
  await second.stop()
  await storage.close()
})
