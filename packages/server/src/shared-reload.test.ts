import type { Clock, Storage } from '@impresario/core'

import { expect, test } from 'vitest'
import { testStorage } from '../../../test/servers/test-storage.ts'
import { SILENT } from './runtime/log.ts'
import { SharedReload } from './shared-reload.ts'

/** A storage whose hints are all lost. */
function withoutHints(storage: Storage): Storage {
  return Object.create(storage, {
    read: { value: storage.read.bind(storage) },
    commit: { value: storage.commit.bind(storage) },
    watch: { value: () => () => undefined },
  }) as Storage
}

test('[H-02] an instance that hears nothing finds a reload of another within five seconds', async () => {
  const storage = withoutHints(testStorage({ now: () => Date.now() }))
  /** Ends the sleep of whoever looks around, and says for how long it meant to sleep. */
  const sleeps: { readonly ms: number; end: () => void }[] = []
  const clock: Clock = {
    now: () => 0,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        sleeps.push({ ms, end: resolve })
        signal.addEventListener('abort', () => resolve())
      }),
  }
  let reloads = 0
  let reloaded: () => void = () => undefined
  const options = { storage, log: SILENT }
  const asked = new SharedReload({ ...options, clock, reload: () => Promise.reject(new Error('it was asked itself')) })
  const other = new SharedReload({
    ...options,
    clock,
    reload: () => {
      reloads += 1
      reloaded()
      return Promise.reject(new Error('what goes wrong in one does not stop it from hearing of the next'))
    },
  })
  await other.start()
  for (let round = 1; round <= 2; round += 1) {
    const done = new Promise<void>((resolve) => {
      reloaded = resolve
    })
    await asked.announce()
    while (sleeps.length < round) await new Promise((resolve) => setImmediate(resolve))
    expect(sleeps.every(({ ms }) => ms <= 5_000)).toBe(true)
    sleeps.at(-1)?.end()
    await done
    expect(reloads).toBe(round)
  }
  await other.stop()
})
