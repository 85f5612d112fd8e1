/** What a shard would give from one lane: its best members, and whether there may be more of them. */
export interface LaneSurvey {
  readonly lane: string
  /** When it was last served. The smallest number is next. */
  readonly round: number
  readonly most: number
  readonly members: readonly { readonly member: string; readonly rank: number }[]
}

export interface Survey {
  readonly shard: number
  readonly lanes: readonly LaneSurvey[]
}

export interface Pick {
  readonly lane: string
  readonly round: number
}

export interface Plan {
  /** How many to claim from each shard; for a claim of all lanes also from which lanes, in rotation. */
  readonly shares: ReadonlyMap<number, { readonly count: number; readonly picks: readonly Pick[] | undefined }>
  /** Fewer are planned than requested, and there may be more. */
  readonly isCut: boolean
}

interface Candidate {
  readonly shard: number
  readonly member: string
  readonly rank: number
}

const SEQUENCE_LENGTH = 12

/** The best items over all lanes and shards. */
export function planBest(surveys: readonly Survey[], limit: number): Plan {
  const candidates = new Map<string, Candidate>()
  for (const { shard, lanes } of surveys) {
    for (const { members } of lanes) {
      for (const { member, rank } of members) candidates.set(`${shard} ${member}`, { shard, member, rank })
    }
  }
  const shares = new Map<number, { count: number; picks: undefined }>()
  for (const { shard } of [...candidates.values()].sort(byPosition).slice(0, limit)) {
    shares.set(shard, { count: (shares.get(shard)?.count ?? 0) + 1, picks: undefined })
  }
  return { shares, isCut: false }
}

interface Row {
  readonly lane: string
  readonly round: number
  /** The items that the shards returned, best first. */
  readonly candidates: readonly Candidate[]
  /** The index of the next one. */
  next: number
  /** How many returned items of each shard are left before the shard would have to be queried again. */
  readonly left: Map<number, number>
}

/** The best item of each lane in rotation, over all shards. A lane counts as served when any shard served it. */
export function planRotation(surveys: readonly Survey[], limit: number): Plan {
  const rows = rowsOf(surveys)
  let round = Math.max(0, ...rows.map((row) => row.round))
  const taken = new Set<string>()
  const shares = new Map<number, { count: number; picks: Pick[] }>()
  let isCut = false
  let waiting = rows
  while (taken.size < limit && waiting.length > 0) {
    const served: Row[] = []
    for (const row of waiting) {
      if (taken.size === limit) break
      const found = nextOf(row, taken)
      if (found === 'cut') isCut = true
      if (found === undefined || found === 'cut') continue
      taken.add(keyOf(found))
      round += 1
      const share = shares.get(found.shard) ?? { count: 0, picks: [] }
      shares.set(found.shard, { count: share.count + 1, picks: [...share.picks, { lane: row.lane, round }] })
      served.push(row)
    }
    waiting = served
  }
  return { shares, isCut: isCut && taken.size < limit }
}

/**
 * The best item of a lane that was not taken through another lane; `cut` if a shard may have one that it has not
 * returned.
 */
function nextOf(row: Row, taken: ReadonlySet<string>): Candidate | 'cut' | undefined {
  for (;;) {
    for (const left of row.left.values()) if (left === 0) return 'cut'
    const found = row.candidates[row.next]
    if (found === undefined) return undefined
    row.next += 1
    const left = row.left.get(found.shard)
    if (left !== undefined) row.left.set(found.shard, left - 1)
    if (!taken.has(keyOf(found))) return found
  }
}

function rowsOf(surveys: readonly Survey[]): Row[] {
  const rows = new Map<
    string,
    { lane: string; round: number; candidates: Candidate[]; next: number; left: Row['left'] }
  >()
  for (const { shard, lanes } of surveys) {
    for (const { lane, round, most, members } of lanes) {
      const row = rows.get(lane) ?? { lane, round: 0, candidates: [], next: 0, left: new Map<number, number>() }
      rows.set(lane, row)
      row.round = Math.max(row.round, round)
      row.candidates.push(...members.map(({ member, rank }) => ({ shard, member, rank })))
      if (members.length === most) row.left.set(shard, most)
    }
  }
  for (const { candidates } of rows.values()) candidates.sort(byPosition)
  return [...rows.values()].sort((a, b) => a.round - b.round)
}

function byPosition(a: Candidate, b: Candidate): number {
  if (a.rank !== b.rank) return a.rank - b.rank
  const [x, y] = [a.member.slice(0, SEQUENCE_LENGTH), b.member.slice(0, SEQUENCE_LENGTH)]
  return x === y ? a.shard - b.shard : x < y ? -1 : 1
}

function keyOf({ shard, member }: Candidate): string {
  return `${shard} ${member}`
}
