import type { Contestant } from '../contest/contestant.ts'
import { beeQueue } from './bee-queue.ts'
import { bullmq } from './bullmq.ts'
import { dbos } from './dbos.ts'
import { graphileWorker } from './graphile-worker.ts'
import { impresarioLibrary } from './impresario-library.ts'
import { impresarioServer } from './impresario-server.ts'
import { openworkflow } from './openworkflow.ts'
import { pgBoss } from './pg-boss.ts'
import { plainjob } from './plainjob.ts'
import { restate } from './restate.ts'

/** By their names on the command line. */
export const CONTESTANTS: Readonly<Record<string, Contestant>> = {
  bullmq,
  'bee-queue': beeQueue,
  'graphile-worker': graphileWorker,
  'pg-boss': pgBoss,
  dbos,
  openworkflow,
  plainjob,
  restate,
  'impresario-library': impresarioLibrary,
  'impresario-server': impresarioServer,
}

/** Ours, in its two variants. */
export const OWN_NAMES = ['impresario-library', 'impresario-server'] as const
