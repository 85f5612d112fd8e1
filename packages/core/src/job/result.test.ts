import { LIMITS } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { expect, test } from 'vitest'
import type { Job } from './job.ts'
import { dataOf, resultsUpTo } from './result.ts'
import {
  aChild,
  aTask,
  child,
  childEnds,
  chooses,
  failsWith,
  fanOut,
  goTo,
  happens,
  open,
  play,
  reports,
  retries,
  task,
} from './samples.ts'
import type { Cue, Scene } from './samples.ts'

/** What each result of a job is, by its state. */
const given = ({ results = [], stateHistory }: Job): object =>
  Object.fromEntries(results.map((result) => [result.state, dataOf(result, stateHistory)]))

const renders = (to: string, data?: JsonObject | string | null): readonly Cue[] => [
  chooses(task({ success: to, odd: to, failure: to })),
  reports('success', data === undefined ? {} : { data }),
]
const large = (character: string): string => character.repeat(LIMITS.contextBytesMax / 2)
const recordSize = ({ job }: Scene): number => JSON.stringify([job.stateHistory, job.results]).length

test('[B-14] a result is kept under the state that asked for it, and stored once', () => {
  const { job } = play(open(), ...renders('work', { url: 'u', seconds: 3 }))
  expect(job.stateHistory).toEqual({ url: 'u', seconds: 3 })
  expect(job.results).toEqual([{ state: 'start', of: 'render', keys: ['url', 'seconds'] }])
  expect(given(job)).toEqual({ start: { url: 'u', seconds: 3 } })
})

test('[B-14] two results with the same keys do not overwrite each other', () => {
  const { job } = play(open(), ...renders('work', { url: 'a', n: 1 }), ...renders('review', { url: 'b', m: 2 }))
  expect(job.stateHistory).toEqual({ url: 'b', n: 1, m: 2 })
  expect(job.results).toEqual([
    { state: 'start', of: 'render', keys: ['n'], data: { url: 'a' } },
    { state: 'work', of: 'render', keys: ['url', 'm'] },
  ])
  const { job: third } = play({ ...open(), job }, ...renders('work', { url: 'c', n: 2 }))
  expect(given(third)).toEqual({ start: { url: 'a', n: 1 }, work: { url: 'b', m: 2 }, review: { url: 'c', n: 2 } })
})

test('[B-14] a handler that writes over a result in the state history does not change the result', () => {
  const before = play(open(), ...renders('work', { url: 'u', list: [1, { a: 1 }] }))
  const written = { list: [1, { a: 2 }], own: true }
  const { job } = play(before, chooses(goTo('review'), written))
  expect(job.stateHistory).toEqual(written)
  expect(given(job)).toEqual({ start: { url: 'u', list: [1, { a: 1 }] } })
})

test('[B-14] a state history that comes back unchanged from a handler costs nothing', () => {
  const data = { url: 'u', list: [1, { a: null, b: [] }] }
  const before = play(open(), ...renders('work', data))
  const { job } = play(before, chooses(goTo('review'), structuredClone(before.job.stateHistory)))
  expect(job.results).toEqual(before.job.results)
  for (const list of [{ 0: 1 }, [1], [1, { a: null, c: [] }], null, 'x', [1, null]]) {
    const changed = play(before, chooses(goTo('review'), { url: 'u', list }))
    expect(given(changed.job)).toEqual({ start: data })
    expect(changed.job.results).toEqual([{ state: 'start', of: 'render', keys: ['url'], data: { list: data.list } }])
  }
})

test('[B-14] a state that is visited again has its newest result, as the last of all', () => {
  const { job } = play(
    open(),
    ...renders('work', { n: 1 }),
    ...renders('work', { n: 2 }),
    ...renders('start', { n: 3 }),
  )
  expect(job.results?.map(({ state }) => state)).toEqual(['start', 'work'])
  expect(given(job)).toEqual({ start: { n: 1 }, work: { n: 3 } })
})

test('[B-14] results that are no objects, or nothing, are kept as they are', () => {
  const text = play(open(), ...renders('work', 'plain'))
  expect(text.job.results).toEqual([{ state: 'start', of: 'render', at: 'render' }])
  expect(play(text, chooses(goTo('review'), { render: 'plain', own: 1 })).job.results).toEqual(text.job.results)
  const { job } = play(text, ...renders('review', 'second'), ...renders('start', null))
  expect(given(job)).toEqual({ start: 'plain', work: 'second', review: null })
  expect(given(play(open(), ...renders('work')).job)).toEqual({ start: undefined })
})

test("[B-14] a child's result is kept under the state that ran it", () => {
  const asked = play(open(), chooses(child({ success: 'work', failure: 'work' })))
  const { job } = play(asked, childEnds('finished', { cut: 7 }))
  expect(job.results).toEqual([{ state: 'start', of: 'trailer', isChild: true, at: 'trailer' }])
  const again = play({ ...asked, job }, chooses(child({ success: 'review' })), childEnds('finished', { cut: 8 }))
  expect(given(again.job)).toEqual({ start: { cut: 7 }, work: { cut: 8 } })
})

test('[B-14] how a task or a child ended is kept with it', () => {
  const odd = play(open(), chooses(task({ odd: 'work' })), reports('odd', { data: { why: 'dark' } }))
  expect(odd.job.results).toEqual([{ state: 'start', of: 'render', status: 'odd', keys: ['why'] }])
  const failed = play(open(), chooses(task({ failure: 'work' })), failsWith('INVALID_INPUT_ERROR'))
  const error = { code: 'INVALID_INPUT_ERROR', message: 'no light' }
  expect(failed.job.results).toEqual([{ state: 'start', of: 'render', status: 'failure', error }])
  const child1 = play(open(), chooses(child({ failure: 'work' })), childEnds('failed', { cut: 1 }))
  expect(child1.job.results).toMatchObject([{ state: 'start', of: 'trailer', status: 'failure', at: 'trailer' }])
})

test('[B-14] [M-02] an ended job keeps its results as far as they are short, to be run again', () => {
  const ended = play(open(), ...renders('done', { n: 1 })).job
  expect(ended).toMatchObject({ status: 'finished', results: [{ state: 'start', of: 'render', keys: ['n'] }] })
  const long = play(open(), ...renders('work', { text: 'x'.repeat(20_000) }), ...renders('done', { text: 'y' })).job
  expect(long.results).toEqual([
    { state: 'start', of: 'render', isDropped: true },
    { state: 'work', of: 'render', keys: ['text'] },
  ])
})

test("[B-14] what a person corrects in a quarantined job's state history is corrected in its results", () => {
  const { job, script } = play(open({}, { handlerAttemptsMax: 1 }), ...renders('work', { url: 'u', n: 1 }))
  const error = { code: 'BLUEPRINT_GONE', message: 'gone', state: 'work' } as const
  const stranded = play({ ...open(), script, job }, happens({ type: 'stranded', error }))
  expect(given(play(stranded, retries).job)).toEqual({ start: { url: 'u', n: 1 } })
  const edited = play(stranded, happens({ type: 'retried', by: 'bob', stateHistory: { url: 'v' } }))
  expect(given(edited.job)).toEqual({ start: { url: 'v' } })
})

test('[B-14] records of earlier versions, without results, go on', () => {
  const { results: _results, ...old } = play(open(), ...renders('work', { url: 'u' })).job
  const { job } = play({ ...open(), job: old }, chooses(goTo('review')), ...renders('work', { url: 'v' }))
  expect(job.stateHistory).toEqual({ url: 'v' })
  expect(given(job)).toEqual({ review: { url: 'v' } })
})

test('[B-14] a record with results is not twice as large as one without', () => {
  const data = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`key ${index}`, { value: index }]))
  const scene = play(open(), ...renders('work', data), ...renders('review', { other: true }))
  expect(recordSize(scene)).toBeLessThan(1.6 * JSON.stringify(scene.job.stateHistory).length)
})

test('[B-14] what is too large to be kept is dropped, oldest first, with a note', () => {
  const scene = play(
    open(),
    ...renders('work', { text: large('a') }),
    ...renders('review', { text: large('b') }),
    ...renders('regather', { text: large('c') }),
  )
  expect(scene.job.results).toMatchObject([
    { state: 'start', of: 'render', isDropped: true },
    { state: 'work', data: { text: large('b') } },
    { state: 'review', keys: ['text'] },
  ])
  expect(scene.job.trail.at(-1)).toMatchObject({ event: 'result_dropped' })
  const next = play(scene, ...renders('gather', { text: large('d') }))
  expect(next.job.results?.map(({ isDropped }) => isDropped)).toEqual([true, true, undefined, undefined])
  expect(recordSize(next)).toBeLessThan(2 * LIMITS.contextBytesMax)
})

test('[B-14] the branches of a fan-out have the names that they were sent out with', () => {
  const calls = [{ ...aTask(), as: 'poster' }, { ...aChild(), as: 'trailer' }, aTask()]
  const sent = play(open(), chooses(fanOut(...calls)))
  const { job } = play(
    sent,
    reports('success', { branch: '2', data: 3 }),
    childEnds('finished', 2, { branch: '1' }),
    reports('success', { data: 1 }),
  )
  expect(job.aggregationResults).toEqual({
    'j.1.0': { as: 'poster', status: 'success', data: 1, error: undefined },
    'j.1.1': { as: 'trailer', status: 'success', data: 2, error: undefined },
    'j.1.2': { status: 'success', data: 3, error: undefined },
  })
  expect(job.results).toBeUndefined()
})

test('[B-14] [M-02] a job that is run again from a state has the results of the states before it', () => {
  const { job } = play(
    open(),
    ...renders('work', { a: 1 }),
    ...renders('review', { b: 2 }),
    ...renders('done', { c: 3 }),
  )
  const states = (from: string): readonly string[] => resultsUpTo(job, from)?.map(({ state }) => state) ?? []
  expect(states('start')).toEqual([])
  expect(states('work')).toEqual(['start'])
  expect(states('review')).toEqual(['start', 'work'])
  expect(states('elsewhere')).toEqual(['start', 'work', 'review'])
  expect(resultsUpTo({ ...job, results: undefined }, 'work')).toBeUndefined()
})
