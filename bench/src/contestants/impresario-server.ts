/** The product as most users run it: a server; clients and workers reach it over HTTP with the SDKs. */
import { createClient } from '@impresario/client'
import { createWorker } from '@impresario/worker'
import type { Backing } from '../backing.ts'
import { untilNoneOpen } from '../contest/agreement.ts'
import type { Contestant } from '../contest/contestant.ts'
import { CLIENT_TOKEN, WORKER_TOKEN, startServer } from '../processes.ts'
import { WORKER_LOG, openOf, ownBacking, ownVariants, performer, storageUrl } from './impresario.ts'

async function serve(variant: string, node: string): Promise<Backing> {
  const backing = await ownBacking(variant)
  const server = await startServer(storageUrl(variant, backing.url), node).catch(async (error: unknown) => {
    await backing.stop()
    throw error
  })
  const stop = async (): Promise<void> => {
    await server.stop()
    await backing.stop()
  }
  return { url: server.url, directory: backing.directory, pids: () => [...backing.pids(), server.pid], stop }
}

export const impresarioServer: Contestant = {
  title: 'Impresario (server)',
  variants: ownVariants('apart'),
  serve,
  async producer({ url }) {
    const client = createClient({ url, token: CLIENT_TOKEN })
    return {
      start: (payload) => client.start('noop', payload),
      flow: (payload) => client.start('diamond', { ...payload, quiet: true }),
      settled: () => untilNoneOpen(async () => openOf((await client.dashboard()).jobs)),
      close: async () => {},
    }
  },
  async worker({ url }, hooks) {
    const worker = createWorker({
      url,
      token: WORKER_TOKEN,
      id: `bench-${process.pid}`,
      concurrency: hooks.concurrency,
      log: WORKER_LOG,
    })
    worker.task('noop', performer(hooks))
    await worker.start()
    return { close: () => worker.stop() }
  },
}
