import type { Contest, Match } from './ranking.ts'

function match(name: string, round: number, figures: Match['figures']): Match {
  const own = name.startsWith('impresario-')
  return {
    name,
    variant: own ? 'embedded' : 'file',
    league: 'embedded',
    round,
    title: own ? `Impresario (${name.slice('impresario-'.length)})` : `${name} <1.0>`,
    durability: 'SQLite',
    shape: 'apart',
    ...(own ? {} : { note: 'A peer.' }),
    figures,
  }
}

/** Two rounds of one peer and ours. The peer's first round was disturbed. */
export const CONTEST: Contest = {
  at: '2026-01-02T03:04:05.000Z',
  minutes: 12.3,
  machine: { cores: 2, processor: 'Some CPU', kernel: '6.1' },
  programs: ['Node 22'],
  rounds: 2,
  seconds: 2,
  width: 100,
  singles: 10,
  matches: [
    match('peer', 1, { endToEndPerS: 10, foreignEndToEnd: 90, startP50Ms: 4, foreignLatency: 90 }),
    match('impresario-library', 1, { endToEndPerS: 3_000, startP50Ms: 1, serverMiB: 10, workerMiB: 20 }),
    match('peer', 2, { endToEndPerS: 1_000, foreignEndToEnd: 1, startP50Ms: 4, foreignLatency: 90 }),
    match('impresario-server', 2, { endToEndPerS: 500, startP50Ms: 8, serverMiB: 10, workerMiB: 20 }),
    { ...match('broken', 2, {}), error: 'Of 5 (job) that were started, 4 were done.' },
  ],
}
