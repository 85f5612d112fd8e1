/** One contestant, once, from an empty storage: all measures one after the other. */
import { fileURLToPath } from 'node:url'
import type { Backing } from '../backing.ts'
import { Subordinate } from '../channel.ts'
import { cpuSeconds, foreignLoad, memoryMiB, percentile, sleep, untilQuiet } from '../measure.ts'
import type { Patience } from '../measure.ts'
import type { Contestant, Variant } from './contestant.ts'
import type { Orders, WorkKind } from './orders.ts'

type Actor = Subordinate<Orders>
const ACTOR = fileURLToPath(new URL('actor-main.js', import.meta.url))

export interface MatchOptions {
  /** How long each measure accepts new work. */
  readonly seconds: number
  readonly jobsMax: number
  /** Timed jobs on an idle system. */
  readonly singles: number
  /** Concurrent calls, and handlers that may run at once. */
  readonly width: number
  readonly patience: Patience
  readonly node: string
}

/** The measured values; `foreign…` is the share of the machine that other processes used meanwhile, in per cent. */
export type Figures = Partial<Record<FigureName | `foreign${string}`, number>>

export type FigureName =
  | 'enqueuePerS'
  | 'drainPerS'
  | 'endToEndPerS'
  | 'cpuMsPerJob'
  | 'startP50Ms'
  | 'startP99Ms'
  | 'diamondsPerS'
  | 'serverMiB'
  | 'workerMiB'
  | 'repeated'
  | 'seconds'

/** A contestant that needs longer for one measure is stuck. */
const STUCK_MS = 90_000
/** Single jobs are spaced so far apart that each finds an idle system. */
const GAP_MS = 10
const SINGLES_MS = 8_000
const WARM_UPS = 10
/** The wait after a worker starts: instances that share a storage notify each other of it within two seconds. */
const KNOWN_MS = 2_500

interface Scene {
  readonly variant: Variant
  readonly options: MatchOptions
  readonly backing: Backing
  readonly producer: Actor
  readonly worker: Actor
  /** Jobs and diamonds started so far: the same number must be done at the end. */
  readonly started: Record<WorkKind, number>
}

/** Rejects when any job is missing. */
export async function runMatch(
  name: string,
  contestant: Contestant,
  variantName: string,
  options: MatchOptions,
): Promise<Figures> {
  const variant = contestant.variants[variantName]
  if (variant === undefined) throw new Error(`${name} has no variant "${variantName}".`)
  const begin = performance.now()
  const backing = await contestant.serve(variantName, options.node)
  const program = { node: options.node, file: ACTOR, args: [name, variantName, backing.url] }
  const actor = (): Actor => new Subordinate(program)
  const producer = actor()
  const worker = variant.shape === 'together' ? producer : actor()
  const scene: Scene = { variant, options, backing, producer, worker, started: { job: 0, flow: 0 } }
  try {
    await producer.ask('prepare', STUCK_MS)
    const figures = await playAll(scene)
    return { ...figures, seconds: (performance.now() - begin) / 1000 }
  } finally {
    await producer.stop()
    await worker.stop()
    await backing.stop()
  }
}

async function playAll(scene: Scene): Promise<Figures> {
  const { variant, producer } = scene
  const figures: Figures = {}
  const play = async (title: string, measure: (scene: Scene) => Promise<Figures>): Promise<void> => {
    await untilQuiet(() => pidsOf(scene), scene.options.patience)
    const [found, foreign] = await foreignLoad(
      () => pidsOf(scene),
      () => measure(scene),
    )
    Object.assign(figures, found, { [`foreign${title}`]: foreign })
  }
  const lacks = (what: 'enqueue' | 'drain' | 'diamonds'): boolean => variant.without?.includes(what) === true
  if (lacks('drain')) await openWorker(scene)
  await producer.ask('openProducer', STUCK_MS)
  await producer.ask('introduce', STUCK_MS)
  if (!lacks('enqueue')) await play('Enqueue', enqueue)
  if (!lacks('drain')) await play('Drain', drain)
  await sleep(KNOWN_MS)
  await play('EndToEnd', endToEnd)
  await play('Latency', latency)
  if (!lacks('diamonds')) await play('Diamonds', diamonds)
  const { handled } = await scene.worker.ask('count', STUCK_MS, 'job')
  return { ...figures, ...memory(scene), repeated: handled - scene.started.job }
}

function pidsOf({ backing, producer, worker }: Scene): readonly number[] {
  return [...new Set([...backing.pids(), producer.pid, worker.pid])]
}

async function openWorker({ worker, options }: Scene): Promise<void> {
  await worker.ask('openWorker', STUCK_MS, options.width)
}

async function produce(scene: Scene, kind: WorkKind): Promise<{ count: number; beganAt: number; endedAt: number }> {
  const { options, variant } = scene
  const most = kind === 'job' ? variant.jobsMax : variant.flowsMax
  const count = Math.min(options.jobsMax, most ?? options.jobsMax)
  const load = { ms: options.seconds * 1000, count, width: options.width }
  const made = await scene.producer.ask('produce', STUCK_MS, { kind, load })
  scene.started[kind] += made.count
  return made
}

/** When everything that was started was done, and its storage knew it. */
async function finished(scene: Scene, kind: WorkKind): Promise<{ firstAt: number; endedAt: number }> {
  const { worker, producer, started } = scene
  try {
    const { firstAt, lastAt } = await worker.ask('awaitCount', STUCK_MS, { kind, distinct: started[kind] })
    const { settledAt } = await producer.ask('settle', STUCK_MS)
    return { firstAt, endedAt: Math.max(lastAt, settledAt) }
  } catch (error) {
    const { distinct } = await worker.ask('count', 5_000, kind)
    throw new Error(`Of ${started[kind]} (${kind}) that were started, ${distinct} were done.`, { cause: error })
  }
}

async function enqueue(scene: Scene): Promise<Figures> {
  const { count, beganAt, endedAt } = await produce(scene, 'job')
  if (scene.variant.without?.includes('drain') === true) await finished(scene, 'job')
  return { enqueuePerS: perSecond(count, endedAt - beganAt) }
}

async function drain(scene: Scene): Promise<Figures> {
  const waiting = scene.started.job
  await openWorker(scene)
  const { firstAt, endedAt } = await finished(scene, 'job')
  return { drainPerS: perSecond(waiting, endedAt - firstAt) }
}

async function endToEnd(scene: Scene): Promise<Figures> {
  const before = cpuSeconds(pidsOf(scene))
  const { count, beganAt, endedAt: producedAt } = await produce(scene, 'job')
  const { endedAt } = await finished(scene, 'job')
  const cpu = cpuSeconds(pidsOf(scene)) - before
  return {
    endToEndPerS: perSecond(count, Math.max(endedAt, producedAt) - beganAt),
    cpuMsPerJob: (cpu * 1000) / count,
  }
}

/** From the enqueue call to the first line of the handler, on an otherwise idle system. */
async function latency(scene: Scene): Promise<Figures> {
  const { producer, worker, options } = scene
  const spans: number[] = []
  const begin = performance.now()
  for (let index = 0; index < options.singles + WARM_UPS && performance.now() - begin < SINGLES_MS; index += 1) {
    const [{ startedAt }, { sentAt }] = await Promise.all([
      worker.ask('awaitStart', STUCK_MS, index),
      producer.ask('sendOne', STUCK_MS, index),
    ])
    spans.push(startedAt - sentAt)
    await sleep(GAP_MS)
  }
  // The first ones warm up connections and code.
  const timed = spans.slice(Math.min(WARM_UPS, Math.floor(spans.length / 4)))
  return { startP50Ms: percentile(timed, 50), startP99Ms: percentile(timed, 99) }
}

async function diamonds(scene: Scene): Promise<Figures> {
  const { count, beganAt, endedAt: producedAt } = await produce(scene, 'flow')
  const { endedAt } = await finished(scene, 'flow')
  return { diamondsPerS: perSecond(count, Math.max(endedAt, producedAt) - beganAt) }
}

function memory({ backing, worker }: Scene): Figures {
  return { serverMiB: memoryMiB(...backing.pids()), workerMiB: memoryMiB(worker.pid) }
}

function perSecond(count: number, ms: number): number {
  return count / (ms / 1000)
}
