import { contract } from '@impresario/protocol'
import { z } from 'zod'
import { createWorker, jsonSchema, outcome } from './index.ts'

// Nothing here runs. Every `@ts-expect-error` stands for a mistake that the compiler has to find.

const media = contract('media', {
  transcode: {
    input: z.object({ path: z.string(), preset: z.enum(['720p', '1080p']).default('720p') }),
    output: z.object({ url: z.string(), seconds: z.number() }),
    outcomes: { needs_review: z.object({ reason: z.string() }) },
  },
  thumbnail: { input: z.object({ at: z.number() }), output: z.object({ image: z.string() }) },
})

const worker = createWorker()
const thumbnail = ({ at }: { at: number }) => ({ image: `${at}.png` })

worker.handle(media, {
  transcode: async (input, task) => {
    const preset: '720p' | '1080p' = input.preset
    task.progress(0.5, preset)
    if (input.path.endsWith('.gif')) return outcome('needs_review', { reason: 'a picture' })
    return { url: input.path, seconds: 1 }
  },
  thumbnail,
})

// @ts-expect-error a handler is missing
worker.handle(media, { thumbnail })

worker.handle(media, {
  transcode: () => ({ url: '', seconds: 0 }),
  thumbnail,
  // @ts-expect-error there is no such task in the contract
  subtitles: () => ({}),
})

worker.handle(media, {
  // @ts-expect-error `seconds` is missing
  transcode: async () => ({ url: '' }),
  thumbnail,
})

worker.handle(media, {
  // @ts-expect-error `seconds` is a number
  transcode: () => ({ url: '', seconds: '1' }),
  thumbnail,
})

worker.handle(media, {
  // @ts-expect-error the contract names no such outcome
  transcode: async () => outcome('too_long', { reason: '' }),
  thumbnail,
})

worker.handle(media, {
  // @ts-expect-error the outcome has other data
  transcode: async () => outcome('needs_review', { why: '' }),
  thumbnail,
})

worker.handle(media, {
  // @ts-expect-error the input has no such field
  transcode: (input) => ({ url: String(input.file), seconds: 1 }),
  thumbnail,
})

worker.handle(media, {
  transcode: () => ({ url: '', seconds: 0 }),
  // @ts-expect-error the handler wants another input than the contract gives
  thumbnail: (input: { at: string }) => ({ image: input.at }),
})

worker.handle(media.thumbnail, thumbnail).handle(media.transcode, async ({ path, preset }, task) => {
  task.progress(0.5, preset)
  return path.endsWith('.gif') ? outcome('needs_review', { reason: 'a picture' }) : { url: path, seconds: 1 }
})

// @ts-expect-error `image` is missing
worker.handle(media.thumbnail, () => ({}))

// @ts-expect-error the contract names no such outcome
worker.handle(media.transcode, () => outcome('too_long', { reason: '' }))

// @ts-expect-error the input has no such field
worker.handle(media.thumbnail, (input) => ({ image: String(input.file) }))

// @ts-expect-error one task has one handler
worker.handle(media.thumbnail, { thumbnail })

// @ts-expect-error a limit is a number
createWorker({ taskLimits: { 'media.transcode': 'two' } })

worker.task('untyped', (params, task) => {
  const text: unknown = params['text']
  void task.sendEvent('seen', { count: 1 })
  return text
})

worker.task('typed', { input: z.object({ n: z.number() }), events: { seen: z.object({}) } }, ({ n }) => n + 1)
worker.task('described', { input: jsonSchema<{ n: number }>({ type: 'object' }), timeoutMs: 5 }, ({ n }) => n + 1)
worker.task('without an input', { description: 'takes what comes' }, (params) => params['n'])

// @ts-expect-error the schema gives a number
worker.task('wrong', { input: z.object({ n: z.number() }) }, ({ n }) => n.length)

// @ts-expect-error a payload is an object
worker.task('wrong', (_params, task) => task.sendEvent('seen', 5))

worker
  .use(async (context, next) => {
    context.params = { ...context.params, added: true }
    return next()
  })
  .onCommand('reload', ({ params, taskId }) => [params['hard'], taskId?.length])

worker.use((context) => {
  // @ts-expect-error the task of a middleware's context is not to be replaced
  context.task = undefined
})

createWorker({
  orchestrators: [{ url: 'https://a', priority: 1, weight: 2, token: 't' }],
  orchestratorMode: 'waterfall',
  webSockets: true,
  sts: true,
  signing: true,
  tls: { caPath: 'ca.pem', certPath: 'me.pem', keyPath: 'me.key' },
  capacityChecker: (type) => type.length > 3,
  skillDependencies: { 'media.transcode': ['scenes-v2'] },
})

// @ts-expect-error there is no such mode
createWorker({ orchestratorMode: 'sometimes' })
