import { expect, test, vi } from 'vitest'

/** What a program prints. Workers tell of themselves on the error stream, which is left out. */
async function printed(program: () => Promise<unknown>): Promise<readonly unknown[]> {
  const log = vi.spyOn(console, 'log').mockReturnValue()
  const errors = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  try {
    await program()
    return log.mock.calls.map(([first]) => first as unknown)
  } finally {
    log.mockRestore()
    errors.mockRestore()
  }
}

test('[E-07] 02-hello: server, worker and client in one file greet Ada', async () => {
  expect(await printed(() => import('./02-hello.ts'))).toEqual(['Hello, Ada!'])
})

test('[B-08, E-07] 03-fan-out: three workers share the branches, and a failed one is told to the aggregator', async () => {
  expect(await printed(() => import('./03-fan-out.ts'))).toEqual([{ total: 12, failed: 1 }])
})

test('[B-04] 04-approval: a job goes on as a person decides, and as its blueprint says when nobody does', async () => {
  expect(await printed(() => import('./04-approval.ts'))).toEqual([
    '20 euros paid back',
    '900 euros paid back',
    'failed in "refused"',
  ])
})

test('[E-07, C-09] 06-embedded: an order that was taken before the program ended is served after it starts again', async () => {
  expect(await printed(() => import('./06-embedded.ts'))).toEqual(['a plate of soup'])
})

test('[M-05] 08-testing: a blueprint is tested over two weeks, two retries and a crash', async () => {
  expect(await printed(() => import('./08-testing.ts'))).toEqual([
    '1 mail, and then it is wait',
    '1 reminder on 2026-03-15',
    'attempts: 1, 1, 2, 3',
  ])
})

test('[K-01, K-04, K-09, K-13, K-16] 09-automations: an assistant reads every push, asks, keeps to its budget and is on record', async () => {
  expect(await printed(() => import('./09-automations.ts'))).toEqual([
    'succeeded after read (succeeded), ask (skipped), tell (succeeded) for $0.02',
    'asked: Deploy "Move the database"?',
    'succeeded after read (succeeded), ask (succeeded), tell (succeeded) for $0.02',
    'not for main',
    'skipped',
    '$0.04 and 1800 tokens today',
    '2099-12-24T07:00:00.000Z',
    'automation.created for ada',
    'run.started',
    'run.started',
    'run.skipped: budget',
  ])
})
