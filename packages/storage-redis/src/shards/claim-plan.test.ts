import { expect, test } from 'vitest'
import { planBest, planRotation } from './claim-plan.ts'
import type { LaneSurvey, Survey } from './claim-plan.ts'

function lane(name: string, round: number, members: readonly (readonly [number, number])[], most = 9): LaneSurvey {
  return {
    lane: name,
    round,
    most,
    members: members.map(([rank, sequence]) => ({
      member: `${sequence.toString(16).padStart(12, '0')}${name}`,
      rank,
    })),
  }
}

function sharesOf(plan: ReturnType<typeof planBest>): unknown {
  return Object.fromEntries([...plan.shares].map(([shard, { count }]) => [shard, count]))
}

test('[G-02] the best items are taken where they are, by rank and then by sequence', () => {
  const surveys: readonly Survey[] = [
    { shard: 0, lanes: [lane('a', 0, [[5, 1], [7, 9]])] }, // prettier-ignore
    { shard: 1, lanes: [lane('a', 0, [[5, 2]]), lane('b', 0, [[1, 30]])] }, // prettier-ignore
    { shard: 2, lanes: [] },
  ]
  expect(sharesOf(planBest(surveys, 2))).toEqual({ 0: 1, 1: 1 })
  expect(sharesOf(planBest(surveys, 3))).toEqual({ 0: 1, 1: 2 })
  expect(sharesOf(planBest(surveys, 9))).toEqual({ 0: 2, 1: 2 })
  expect(planBest(surveys, 0).shares.size).toBe(0)
})

test('[G-02] an item that two lanes show counts once', () => {
  const members = [[5, 1]] as const
  const twice = { ...lane('a', 1, members), lane: 'b' }
  const surveys = [{ shard: 3, lanes: [lane('a', 0, members), twice] }]
  expect(sharesOf(planBest(surveys, 9))).toEqual({ 3: 1 })
  expect(sharesOf(planRotation(surveys, 9))).toEqual({ 3: 1 })
})

test('[G-02] lanes take their places over all shards, the one that waited longest first', () => {
  const surveys: readonly Survey[] = [
    { shard: 0, lanes: [lane('busy', 4, [[1, 1], [2, 2], [3, 3]]), lane('late', 9, [[1, 8]])] }, // prettier-ignore
    { shard: 1, lanes: [lane('busy', 2, [[0, 5]]), lane('rare', 7, [[9, 9]])] }, // prettier-ignore
  ]
  const { shares, isCut } = planRotation(surveys, 4)
  expect(isCut).toBe(false)
  expect(shares.get(1)?.picks).toEqual([
    { lane: 'busy', round: 10 },
    { lane: 'rare', round: 11 },
  ])
  expect(shares.get(0)?.picks).toEqual([
    { lane: 'late', round: 12 },
    { lane: 'busy', round: 13 },
  ])
})

test('[G-02] a lane of which a shard has not shown all is not guessed at', () => {
  const surveys: readonly Survey[] = [
    { shard: 0, lanes: [lane('a', 0, [[1, 1], [2, 2]], 2)] }, // prettier-ignore
    { shard: 1, lanes: [lane('a', 0, [[5, 3]])] }, // prettier-ignore
  ]
  // The third may be in the first shard, or be the one in the second.
  expect(planRotation(surveys, 3)).toMatchObject({ isCut: true })
  expect(sharesOf(planRotation(surveys, 3))).toEqual({ 0: 2 })
  expect(planRotation(surveys, 2)).toMatchObject({ isCut: false })
})
