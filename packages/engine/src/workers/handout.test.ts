import { blueprint } from '@impresario/core'
import { expect, test } from 'vitest'
import { Stage } from '../stage.fixture.ts'

const large = blueprint('large', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'work', params: { text: 'x'.repeat(200_000) }, transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

test('[C-10] a poll for many large tasks gets some of them, and the others are there for the next one', async () => {
  const stage = new Stage([large])
  const worker = await stage.worker('w', { concurrencyMax: 100 })
  for (let job = 0; job < 60; job += 1) await stage.create('large')
  await stage.run()
  const first = await worker.take(60)
  // 16 at first, and then eight at a time.
  expect(first.length).toBeGreaterThan(15)
  expect(first.length).toBeLessThan(40)
  for (const { taskId, delivery } of first) {
    expect(delivery).toBe(1)
    await worker.report(taskId)
  }
  let done = first.length
  for (let polls = 0; done < 60 && polls < 10; polls += 1) {
    const next = await worker.take(60)
    // What was put back counts as if it had never been handed out.
    for (const { delivery } of next) expect(delivery).toBe(1)
    for (const { taskId } of next) await worker.report(taskId)
    done += next.length
  }
  expect(done).toBe(60)
})
