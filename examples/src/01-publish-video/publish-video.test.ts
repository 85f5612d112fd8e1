import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'impresario/client'
import { createServer } from 'impresario/server'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { catalogueVideo, publishVideo } from './blueprint.ts'
import { decodePpm, drawFrame, encodeAnimation, encodePpm } from './picture.ts'
import { createStudio } from './workers.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-studio-'))
})
afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

test('[E-07, B-05, B-08] a video is shot, transcoded by the cheapest worker, approved and catalogued', async () => {
  const server = createServer({
    blueprints: [publishVideo, catalogueVideo],
    settings: { apiHost: '127.0.0.1', apiPort: 0, storageUrl: 'memory:', logLevel: 'silent' },
  })
  const { address } = await server.start()
  const taken: string[] = []
  const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const workers = createStudio({
    directory,
    connection: { transport: server.localTransport(), log: quiet },
    onTask: async (workerId, task) => {
      taken.push(`${task.type} ${workerId}`)
    },
  })
  try {
    await Promise.all(workers.map((worker) => worker.start()))
    const client = createClient({ url: address })
    const job = await client.start(publishVideo, { title: 'Rush & <light>', scenes: 3 })
    for await (const now of job.watch()) {
      if (now.status === 'waiting_for_human') await client.approve(now.id, 'approved')
    }
    const result = await job.result()
    const video = await readFile(join(directory, result.video))
    expect(result.sha256).toBe(createHash('sha256').update(video).digest('hex'))
    expect(result.frames).toBe(24)
    expect(await readFile(join(directory, result.page), 'utf8')).toContain('<h1>Rush &amp; &lt;light></h1>')
    expect((await readdir(join(directory, job.id))).toSorted()).toEqual(['index.html', 'video.png'])
    expect(taken.filter((line) => line.startsWith('media.shoot'))).toHaveLength(3)
    expect(taken).toContain('media.transcode gpu-cheap')
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()))
    await server.stop()
  }
})

test('frames survive their file format', () => {
  const frames = [drawFrame(16, 9, 0), drawFrame(16, 9, 0.5)]
  expect(decodePpm(Buffer.concat(frames.map(encodePpm)))).toEqual(frames)
  expect(() => decodePpm(Buffer.from('no picture'))).toThrow('no image at byte 0')
  expect(() => decodePpm(encodePpm(frames[0]!).subarray(0, 100))).toThrow('cut off')
})

test('an animation has a control chunk and one frame chunk per frame', async () => {
  const animation = await encodeAnimation(
    [0, 0.3, 0.6].map((time) => drawFrame(16, 9, time)),
    12,
  )
  const text = animation.toString('latin1')
  expect(text.split('fcTL')).toHaveLength(4)
  expect(text.split('IDAT')).toHaveLength(2)
  expect(text.split('fdAT')).toHaveLength(3)
  await expect(encodeAnimation([], 12)).rejects.toThrow('at least one frame')
})
