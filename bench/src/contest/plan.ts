import type { Contestant, League } from './contestant.ts'

/** One match: the contestant and its variant. */
export interface Entry {
  readonly name: string
  readonly variant: string
  readonly league: League
}

export const LEAGUES: readonly League[] = ['embedded', 'redis-everysec', 'redis-always', 'postgres']

type Field = Readonly<Record<string, Contestant>>

/** Which contestants play: the requested classes and peers. Ours always play. */
export interface Choice {
  /** `redis` stands for both of its leagues. Empty: all. */
  readonly classes: readonly string[]
  /** Empty: all. */
  readonly only: readonly string[]
}

export function chosenPeers(peers: Field, { classes, only }: Choice): readonly Entry[] {
  return Object.entries(peers)
    .filter(([name]) => only.length === 0 || only.includes(name))
    .flatMap(([name, { variants }]) =>
      Object.entries(variants).map(([variant, { league }]) => ({ name, variant, league })),
    )
    .filter(
      ({ league }) => classes.length === 0 || classes.includes(league) || classes.includes(league.split('-')[0] ?? ''),
    )
}

/**
 * One round, league by league: a peer, then ours, then the next peer, then ours, so that disturbances of the machine
 * affect both. Our variants alternate; each of them plays at least once in a league.
 */
export function roundOf(peers: readonly Entry[], own: readonly string[]): readonly Entry[] {
  return LEAGUES.flatMap((league) => {
    const rivals = peers.filter((peer) => peer.league === league)
    if (rivals.length === 0) return []
    const entries: Entry[] = []
    for (let round = 0; round < Math.max(rivals.length, own.length); round += 1) {
      const rival = rivals[round]
      const mine = own[round % own.length]
      if (rival !== undefined) entries.push(rival)
      if (mine !== undefined) entries.push({ name: mine, variant: league, league })
    }
    return entries
  })
}
