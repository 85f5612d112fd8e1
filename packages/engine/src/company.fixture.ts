import type { TaskOptions } from '@impresario/protocol'
import { onTestFinished } from 'vitest'
import type { EngineSettings } from './engine.ts'
import { Stage, oneTask, settled } from './stage.fixture.ts'

interface CompanyOptions {
  readonly settings?: Partial<EngineSettings>
  readonly task?: TaskOptions
}

/** Instances on one storage, started one after the other, that know of each other. They stop with the test. */
export async function companyOf(count: number, { settings, task }: CompanyOptions = {}): Promise<readonly Stage[]> {
  const stages: Stage[] = []
  for (let number = 0; number < count; number += 1) {
    const first = stages[0]
    const shared = first === undefined ? {} : { clock: first.clock, storage: () => first.storage }
    const identity = { name: `i${number}`, version: `1.${number}`, startedAt: 1_700_000_000 + number }
    const stage = new Stage([oneTask(task)], { ...shared, identity, settings: { ...settings, isShared: true } })
    stages.push(stage)
    // Ids that differ: each stage counts from one.
    for (let ids = 0; ids < number * 1_000; ids += 1) stage.random.id()
    await stage.engine.start()
    onTestFinished(() => stage.engine.stop())
    // Two that met at the very first start might both lead until the next renewal.
    await settled()
  }
  return stages
}
