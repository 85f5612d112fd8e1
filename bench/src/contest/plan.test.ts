import { expect, test } from 'vitest'
import { CONTESTANTS, OWN_NAMES } from '../contestants/index.ts'
import { chosenPeers, roundOf } from './plan.ts'

const everybody = { classes: [], only: [] }
const own: readonly string[] = OWN_NAMES
const peers = Object.fromEntries(Object.entries(CONTESTANTS).filter(([name]) => !own.includes(name)))

test('each peer is followed by ours in its own league, and both of ours play in each', () => {
  const entries = roundOf(chosenPeers(peers, everybody), OWN_NAMES)
  for (const [index, { name, league }] of entries.entries()) {
    if (own.includes(name)) continue
    const next = entries[index + 1]
    expect(own).toContain(next?.name)
    expect(next).toMatchObject({ league, variant: league })
  }
  for (const league of new Set(entries.map((entry) => entry.league))) {
    const playing = entries.filter((entry) => entry.league === league).map(({ name }) => name)
    expect(playing).toEqual(expect.arrayContaining([...own]))
  }
})

test('redis stands for both of its leagues', () => {
  const entries = chosenPeers(peers, { classes: ['redis'], only: [] })
  expect(new Set(entries.map(({ league }) => league))).toEqual(new Set(['redis-everysec', 'redis-always']))
})

test('only those who were asked for play', () => {
  const entries = chosenPeers(peers, { classes: [], only: ['plainjob'] })
  expect(roundOf(entries, OWN_NAMES).map(({ name }) => name)).toEqual(['plainjob', ...own])
})

test('ours can play in every league', () => {
  for (const name of OWN_NAMES) {
    expect(Object.keys(CONTESTANTS[name]?.variants ?? {})).toEqual(
      expect.arrayContaining(['embedded', 'redis-everysec', 'redis-always', 'postgres']),
    )
  }
})
