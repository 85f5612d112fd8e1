import type { DataObject } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { ANNA, Office } from './office.fixture.ts'

const step = (text: string): DataObject => ({ pipeline: [{ id: 'say', uses: 'echo', with: { text } }] })
const PARAMS = { params: { city: 'Berlin', count: 1 } }

test('[K-09] a run by hand with a param that the automation does not have is refused, with the name that was meant', async () => {
  const office = new Office()
  const { id } = await office.create({ ...PARAMS, ...step("${params.city} ${params.unit || 'C'}") })
  const run = (params: DataObject) => office.automations.runNow(id, ANNA, params)
  await expect(run({ ctiy: 'Kazan' })).rejects.toThrow('has no param "ctiy". Did you mean "city"?')
  await expect(run({ city: 'Kazan', elsewhere: 1 })).rejects.toThrow(
    'no param "elsewhere". It has "city", "count", "unit".',
  )
  await expect(run({ ctiy: 'Kazan' })).rejects.toMatchObject({ code: 'INPUT_REFUSED' })
  expect(await office.runs(id)).toEqual([])
  expect(await run({ city: 'Kazan', count: 2 })).toMatchObject({ type: 'started' })
  expect(await run({ unit: 'F' })).toMatchObject({ type: 'waiting' })
})

test.each([
  ['has no params of its own', step('${params.city}')],
  ['reads its params as a whole', { ...PARAMS, ...step('${params}') }],
  ['reads all of its params', { ...PARAMS, ...step('${params.*}') }],
])('[K-09] an automation that %s takes any', async (_, body) => {
  const office = new Office()
  const { id } = await office.create(body)
  expect(await office.automations.runNow(id, ANNA, { other: 1 })).toMatchObject({ type: 'started' })
})
