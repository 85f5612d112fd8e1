/** What both variants of Impresario have in common. */
import type { JsonObject } from '@impresario/protocol'
import type { Log } from '@impresario/worker'
import { openDirectory, startPostgres, startRedis } from '../backing.ts'
import type { Backing } from '../backing.ts'
import type { Hooks, Payload, Variant } from '../contest/contestant.ts'

/** One for each league, under its name. `shapeOnFile`: only one process can have the file. */
export function ownVariants(shapeOnFile: Variant['shape']): Readonly<Record<string, Variant>> {
  return {
    embedded: { league: 'embedded', durability: 'SQLite WAL, synchronous FULL', shape: shapeOnFile },
    'redis-everysec': { league: 'redis-everysec', durability: 'Redis, appendfsync everysec', shape: 'apart' },
    'redis-always': { league: 'redis-always', durability: 'Redis, appendfsync always', shape: 'apart' },
    postgres: { league: 'postgres', durability: 'PostgreSQL, synchronous', shape: 'apart' },
  }
}

export async function ownBacking(variant: string): Promise<Backing> {
  if (variant === 'redis-everysec') return startRedis('everysec')
  if (variant === 'redis-always') return startRedis('always')
  return variant === 'postgres' ? startPostgres() : openDirectory('file')
}

export function storageUrl(variant: string, url: string): string {
  return variant === 'embedded' ? `file:${url}` : url
}

/** Jobs that have not ended. A failed job would never be counted as done, so it ends the run. */
export function openOf(counts: Readonly<Record<string, number>>): number {
  let open = 0
  for (const [status, count] of Object.entries(counts)) {
    const isLost = ['failed', 'quarantined', 'cancelled'].includes(status)
    if (isLost && count > 0) throw new Error(`${count} jobs: ${status}.`)
    if (status !== 'finished') open += count
  }
  return open
}

/** Only important messages: the SDK also logs that it has registered. */
export const WORKER_LOG: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: (message, fields) => console.error(message, fields),
  error: (message, fields) => console.error(message, fields),
}

/** Does nothing, and reports it. */
export function performer(hooks: Hooks): (params: JsonObject) => JsonObject {
  return (params) => {
    const payload = payloadOf(params)
    if (payload.quiet === true) {
      if (payload.last === true) hooks.flowEnded(payload)
      return {}
    }
    hooks.started(payload)
    hooks.ended(payload)
    return {}
  }
}

/** Type boundary: parameters are what the producer sent. */
function payloadOf(params: JsonObject): Payload {
  return params as unknown as Payload
}
