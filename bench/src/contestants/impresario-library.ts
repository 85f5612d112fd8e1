/** The orchestrator as a library, like most peers: no server, each process accesses the storage itself. */
import type { RunnableBlueprint } from '@impresario/core'
import { createOrchestrator } from '@impresario/server/embedded'
import type { Orchestrator } from '@impresario/server/embedded'
import { createWorker } from '@impresario/worker'
import { diamond, noop } from '../blueprints/workload.ts'
import { untilNoneOpen } from '../contest/agreement.ts'
import type { Contestant, Venue } from '../contest/contestant.ts'
import { WORKER_LOG, openOf, ownBacking, ownVariants, performer, storageUrl } from './impresario.ts'

const BLUEPRINTS: readonly RunnableBlueprint[] = [noop, diamond]

/** One per process: if producer and worker are one process, they share it. */
const opened = new Map<string, Promise<Orchestrator>>()

function orchestrator(place: Venue): Promise<Orchestrator> {
  const found = opened.get(place.url) ?? open(place)
  opened.set(place.url, found)
  return found
}

async function open({ url, variant }: Venue): Promise<Orchestrator> {
  const settings = { storageUrl: storageUrl(variant, url), logLevel: 'error' } as const
  const made = createOrchestrator({ blueprints: BLUEPRINTS, settings })
  await made.start()
  return made
}

async function close(place: Venue): Promise<void> {
  const found = opened.get(place.url)
  opened.delete(place.url)
  await (await found)?.stop()
}

export const impresarioLibrary: Contestant = {
  title: 'Impresario (library)',
  variants: ownVariants('together'),
  serve: ownBacking,
  async producer(place) {
    const own = await orchestrator(place)
    const client = own.client()
    return {
      start: (payload) => client.start('noop', payload),
      flow: (payload) => client.start('diamond', { ...payload, quiet: true }),
      settled: () => untilNoneOpen(async () => openOf(await own.parts.storage.counts('job', {}))),
      close: () => close(place),
    }
  },
  async worker(place, hooks) {
    const own = await orchestrator(place)
    const worker = createWorker({
      transport: own.localTransport(),
      id: `bench-${process.pid}`,
      concurrency: hooks.concurrency,
      log: WORKER_LOG,
    })
    worker.task('noop', performer(hooks))
    await worker.start()
    return {
      async close() {
        await worker.stop()
        await close(place)
      },
    }
  },
}
