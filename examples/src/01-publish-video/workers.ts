import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { createWorker } from 'impresario/worker'
import type { HandlersFor, Task, Worker, WorkerOptions } from 'impresario/worker'
import { media } from './contract.ts'
import { decodePpm, drawFrame, encodeAnimation, encodePpm } from './picture.ts'

/** The studio's machines: all can do everything, at different prices per second. */
const MACHINES: readonly WorkerOptions[] = [
  { id: 'gpu-cheap', type: 'gpu', costPerSecond: 0.02, concurrency: 2, gpu: { model: 'T4', vramGb: 16 } },
  { id: 'gpu-fast', type: 'gpu', costPerSecond: 0.09, concurrency: 2, gpu: { model: 'H100', vramGb: 80 } },
  { id: 'cpu-farm', type: 'cpu', costPerSecond: 0.05, concurrency: 2, cpuCores: 64 },
]

interface StudioOptions {
  /** Where the files go, in a folder per job. */
  readonly directory: string
  /** How the workers reach the orchestrator: a URL and a token, or a transport inside this process. */
  readonly connection: Pick<WorkerOptions, 'url' | 'token' | 'transport' | 'log' | 'pollMs'>
  /** Told when a worker has a new task. The work begins when it resolves. */
  readonly onTask?: (workerId: string, task: Task) => Promise<void>
}

export function createStudio({
  directory,
  connection,
  onTask = () => Promise.resolve(),
}: StudioOptions): readonly Worker[] {
  return MACHINES.map((machine) => {
    const worker = createWorker({ ...machine, ...connection })
    return worker.handle(
      media,
      studioHandlers(directory, (task) => onTask(worker.id, task)),
    )
  })
}

/** The work itself. A task may come a second time after a crash: files are named so that this does no harm. */
function studioHandlers(directory: string, begin: (task: Task) => Promise<void>): HandlersFor<typeof media> {
  const at = (file: string) => join(directory, file)
  return {
    async shoot({ scene, frames, width, height }, task) {
      await begin(task)
      const images: Buffer[] = []
      for (let frame = 0; frame < frames; frame += 1) {
        images.push(encodePpm(drawFrame(width, height, (scene + frame / frames) / 4)))
        task.progress((frame + 1) / frames, `scene ${scene + 1}`)
        await setImmediate(undefined, { signal: task.signal })
      }
      await mkdir(at(task.jobId), { recursive: true })
      const file = `${task.jobId}/scene-${scene}.ppm`
      await writeFile(at(file), Buffer.concat(images))
      return { file, frames }
    },

    async transcode({ scenes, framesPerSecond }, task) {
      await begin(task)
      const files = await Promise.all(scenes.map((scene) => readFile(at(scene))))
      const frames = files.flatMap(decodePpm)
      const video = `${task.jobId}/video.png`
      const animation = await encodeAnimation(frames, framesPerSecond)
      await writeFile(at(video), animation)
      return { video, frames: frames.length, bytes: animation.length }
    },

    async fingerprint({ file }, task) {
      await begin(task)
      const content = await readFile(at(file))
      return { sha256: createHash('sha256').update(content).digest('hex') }
    },

    async page({ title, video, sha256 }, task) {
      await begin(task)
      const page = video.replace(/[^/]*$/, 'index.html')
      await writeFile(at(page), pageOf(title, basename(video), sha256))
      await removeScenes(dirname(at(page)))
      return { page }
    },
  }
}

/** They are in the video, and large. Safe to repeat, like everything that a worker does. */
async function removeScenes(folder: string): Promise<void> {
  const scenes = (await readdir(folder)).filter((name) => name.endsWith('.ppm'))
  await Promise.all(scenes.map((name) => rm(join(folder, name), { force: true })))
}

function pageOf(title: string, image: string, sha256: string): string {
  const safe = title.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>${safe}</title>
  <style>body { margin: 4rem auto; max-width: 40rem; font: 1rem system-ui } img { width: 100%; border-radius: .5rem }</style>
  <h1>${safe}</h1>
  <img src="${image}" alt="${safe.replaceAll('"', '&quot;')}">
  <p>SHA-256: <code>${sha256}</code></p>
</html>
`
}
