import { describe, expect, test } from 'vitest'
import type { DataObject } from '@impresario/protocol'
import { ADMIN, ANNA, BEN, Office } from './office.fixture.ts'

const SAY = [{ id: 'say', uses: 'echo', with: { text: '${event.values}' } }]
const SECOND = 1_000

/** An automation with one condition over reported values. */
function reported(office: Office, condition: DataObject, more: DataObject = {}): Promise<{ readonly id: string }> {
  return office.create({ triggers: [{ kind: 'condition', ...condition }], pipeline: SAY, ...more })
}

async function report(office: Office, id: string, output: DataObject): Promise<string> {
  const [view] = await office.conditions.report(id, output, ANNA)
  await office.settle()
  return view?.record.edge.phase ?? ''
}

describe('[K-06] conditions over values that are reported', () => {
  test('error rate > 5 %: fires when it becomes true, not while it stays true, and again after it was over', async () => {
    const office = new Office()
    const { id } = await reported(office, { expression: 'output.error_rate > 5' })
    const phases: string[] = []
    for (const rate of [1, 6, 7, 6, 2, 9]) phases.push(await report(office, id, { error_rate: rate }))
    expect(phases).toEqual(['clear', 'raised', 'raised', 'raised', 'clear', 'raised'])
    const runs = await office.runs(id)
    expect(runs.map(({ trigger }) => trigger)).toEqual([
      { kind: 'condition', by: 'anna' },
      { kind: 'condition', by: 'anna' },
    ])
    expect(office.calls).toEqual([{ text: { 'output.error_rate': 6 } }, { text: { 'output.error_rate': 9 } }])
  })

  test('temperature > 30 with hysteresis: over only below 28; in its cooldown a crossing is a logged skip', async () => {
    const office = new Office()
    const condition = { expression: 'output.celsius > 30', reset: 'output.celsius < 28', cooldown_seconds: 600 }
    const { id } = await reported(office, condition)
    for (const celsius of [31, 29, 31, 29]) await report(office, id, { celsius })
    expect(await office.runs(id)).toHaveLength(1)
    await office.after(60 * SECOND)
    for (const celsius of [27, 31]) await report(office, id, { celsius })
    expect(await office.runs(id)).toHaveLength(1)
    const [first] = await office.runs(id)
    expect(await office.skips(id)).toMatchObject([{ reason: 'cooldown', trigger: 'condition', instead: first?.id }])
    await office.after(600 * SECOND)
    for (const celsius of [27, 31]) await report(office, id, { celsius })
    expect(await office.runs(id)).toHaveLength(2)
  })

  test('`for`: the value that was reported last holds until another comes, and nothing fires before its time', async () => {
    const office = new Office()
    const { id } = await reported(office, { expression: 'output.celsius > 30', for_seconds: 60 })
    expect(await report(office, id, { celsius: 31 })).toBe('pending')
    await office.after(40 * SECOND)
    expect(await report(office, id, { celsius: 20 })).toBe('clear')
    await office.after(60 * SECOND)
    expect(await office.runs(id)).toEqual([])
    await report(office, id, { celsius: 33 })
    await office.after(59 * SECOND)
    expect(await office.runs(id)).toEqual([])
    await office.after(SECOND)
    expect(await office.runs(id)).toHaveLength(1)
    expect(office.calls).toEqual([{ text: { 'output.celsius': 33 } }])
  })

  test('its state, last values and last crossing can be read; what cannot be computed is said and changes nothing', async () => {
    const office = new Office()
    const { id } = await reported(office, { expression: 'output.free < 10' })
    await report(office, id, { free: 5 })
    const raisedAt = office.clock.time
    await office.after(SECOND)
    expect(await report(office, id, { wrong: 1 })).toBe('raised')
    const [view] = await office.conditions.list(id, ANNA)
    expect(view?.record).toMatchObject({
      edge: { phase: 'raised', since: raisedAt },
      crossing: { at: raisedAt, to: 'raised' },
      seen: {
        at: raisedAt + SECOND,
        values: { 'output.free': null },
        holds: null,
        error: expect.any(String) as unknown,
      },
    })
    await report(office, id, { free: 'much' })
    await report(office, id, { free: [1, 2, 3].map(() => 'x'.repeat(9_000)) })
    const [again] = await office.conditions.list(id, ADMIN)
    expect(again?.record.edge.phase).toBe('raised')
    expect(JSON.stringify(again?.record.seen).length).toBeLessThan(5_000)
  })

  test('what is too long, another\u2019s, paused or without such a condition is refused', async () => {
    const office = new Office()
    const { id } = await reported(office, { expression: 'output.free < 10' })
    await expect(office.conditions.report(id, { free: 5 }, BEN)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(office.conditions.list(id, BEN)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(office.conditions.report(id, 'x'.repeat(70_000), ANNA)).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
    })
    await office.automations.pause(id, ANNA)
    await expect(office.conditions.report(id, { free: 5 }, ANNA)).rejects.toMatchObject({ code: 'CONFLICT' })
    const other = await office.create({ triggers: [{ every: 60 }] })
    await expect(office.conditions.report(other.id, {}, ANNA)).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('two instances that take reports at once start one run', async () => {
    const office = new Office()
    const second = new Office({ storage: office.storage, clock: office.clock, instance: 1 })
    const { id } = await reported(office, { expression: 'output.free < 10' }, { overlap: 'parallel' })
    const both = [office, second].flatMap((one) => [1, 2, 3].map((free) => one.conditions.report(id, { free }, ANNA)))
    await Promise.all(both)
    await office.settle()
    expect(await office.runs(id)).toHaveLength(1)
  })
})

describe('[K-06] conditions over the output of a tool', () => {
  const disk = { expression: 'output.free_percent < 10', uses: 'echo', with: { path: '${params.path}' } }
  const body = {
    params: { path: '/data' },
    triggers: [{ kind: 'condition', ...disk, every_seconds: 30 }],
    pipeline: [{ id: 'wait', approval: { message: 'Disk at ${event.output.free_percent} %' } }],
    overlap: 'skip',
  }

  test('disk < 10 %: the tool is called at its interval, and its jobs leave nothing behind', async () => {
    const office = new Office()
    let free = 50
    office.answer = () => ({ output: { free_percent: free } })
    const { id } = await office.create(body)
    await office.settle()
    expect(office.calls).toEqual([{ path: '/data' }])
    await office.after(29 * SECOND)
    expect(office.calls).toHaveLength(1)
    await office.after(SECOND)
    expect(office.calls).toHaveLength(2)
    expect(await office.engine.listJobs({ limit: 10 })).toHaveLength(0)
    free = 8
    await office.after(90 * SECOND, 30 * SECOND)
    expect(office.calls).toHaveLength(5)
    const runs = await office.runs(id)
    expect(runs).toHaveLength(1)
    const [view] = await office.conditions.list(id, ANNA)
    expect(view?.record).toMatchObject({ edge: { phase: 'raised' }, fired: { runId: runs[0]?.id } })
    expect(office.log.errors).toEqual([])
  })

  test('a tool that fails is said and changes nothing; one that never answers is cut off', async () => {
    const office = new Office()
    office.answer = () => ({ code: 'TRANSIENT_ERROR' })
    const { id } = await office.create(body)
    await office.settle()
    const seen = async (): Promise<unknown> => (await office.conditions.list(id, ANNA))[0]?.record.seen
    expect(await seen()).toMatchObject({ holds: null, error: expect.stringContaining('it did not work') as unknown })
    office.isWorking = false
    await office.after(30 * SECOND)
    await office.after(700 * SECOND, 10 * SECOND)
    expect(await seen()).toMatchObject({ holds: null })
    office.isWorking = true
    office.answer = () => ({ output: { free_percent: 1 } })
    await office.after(120 * SECOND, 30 * SECOND)
    expect(await office.runs(id)).toHaveLength(1)
  })

  test('another instance goes on where one stopped; pause ends the calls, and resume begins them', async () => {
    const office = new Office()
    office.answer = () => ({ output: { free_percent: 5 } })
    office.isWorking = false
    const { id } = await office.create(body)
    await office.settle()
    const second = new Office({ storage: office.storage, clock: office.clock, instance: 1 })
    second.answer = office.answer
    await second.after(60 * SECOND, 10 * SECOND)
    expect(await second.runs(id)).toHaveLength(1)
    await second.automations.pause(id, ANNA)
    const calls = second.calls.length
    await second.after(300 * SECOND, 30 * SECOND)
    expect(second.calls).toHaveLength(calls)
    await second.automations.resume(id, ANNA)
    await second.settle()
    expect(second.calls).toHaveLength(calls + 1)
    expect(await second.runs(id)).toHaveLength(1)
  })

  test('another condition in its place starts clear, and a deleted automation leaves nothing behind', async () => {
    const office = new Office()
    office.answer = () => ({ output: { free_percent: 5 } })
    const quick = { ...body, pipeline: SAY }
    const { id } = await office.create(quick)
    await office.settle()
    expect(await office.runs(id)).toHaveLength(1)
    const wider = { ...disk, expression: 'output.free_percent < 20', every_seconds: 30 }
    await office.automations.update(id, { title: 'Test', ...quick, triggers: [{ kind: 'condition', ...wider }] }, ANNA)
    await office.settle()
    expect(await office.runs(id)).toHaveLength(2)
    await office.automations.remove(id, ANNA)
    await office.after(60 * SECOND, 30 * SECOND)
    expect(await office.storage.list('condition', { limit: 10 })).toHaveLength(0)
    expect(await office.storage.lanes('firings')).toEqual([])
  })
})
