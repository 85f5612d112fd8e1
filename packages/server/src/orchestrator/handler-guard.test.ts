import { expect, test } from 'vitest'
import { HandlerGuard } from './handler-guard.ts'
import { SILENT } from '../runtime/log.ts'

const RUN = { jobId: 'j', visit: 1, blueprint: 'b', state: 'spin', isSuspect: true }

// What it does once it is installed concerns the whole process: see `test/system/handlers.test.ts`.

test('[C-11] an endless loop of a handler that held up a process before is stopped', { timeout: 120_000 }, async () => {
  const guard = new HandlerGuard(SILENT)
  const spin = async (): Promise<void> => {
    for (;;) Math.sqrt(2)
  }
  expect(() => guard.run(RUN, spin, () => {})).toThrow('The handler of "spin" held up the whole process for 5 s')
})

test('[C-11] what a handler under suspicion answers or throws comes through', async () => {
  const guard = new HandlerGuard(SILENT)
  expect(
    await guard.run(
      RUN,
      async () => 7,
      () => {},
    ),
  ).toBe(7)
  expect(
    guard.run(
      RUN,
      () =>
        guard.run(
          RUN,
          () => 8,
          () => {},
        ),
      () => {},
    ),
  ).toBe(8)
  const fails = (): never => {
    throw new TypeError('mine')
  }
  expect(() => guard.run(RUN, fails, () => {})).toThrow(TypeError)
  await expect(
    guard.run(
      RUN,
      async () => fails(),
      () => {},
    ),
  ).rejects.toThrow('mine')
})

test('[C-11] without being installed it leaves the process as it is', () => {
  const listeners = (): readonly number[] => [
    process.listenerCount('unhandledRejection'),
    process.listenerCount('uncaughtException'),
  ]
  const before = listeners()
  const guard = new HandlerGuard(SILENT)
  expect(
    guard.run(
      { ...RUN, isSuspect: false },
      () => 1,
      () => {},
    ),
  ).toBe(1)
  guard.uninstall()
  expect(listeners()).toEqual(before)
})
