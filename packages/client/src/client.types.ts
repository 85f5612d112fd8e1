import { createClient, verifyWebhook, type BlueprintRef, type ListedJob } from './index.ts'

// Nothing here runs. Every `@ts-expect-error` stands for a mistake that the compiler has to find.

declare const publish: BlueprintRef<{ path: string; quality?: 'low' | 'high' }, { url: string }, 'cut' | 'published'>

const client = createClient({ url: 'http://localhost' })

export async function right(): Promise<string> {
  const job = await client.start(publish, { path: '/a', quality: 'low' }, { priority: 1 })
  const { url } = await job.result()
  const { currentState: state } = await job.status()
  const known: 'cut' | 'published' = state
  const again = await client.job(job.id, publish).result()
  const untyped: unknown = await (await client.start('publish', { any: 'thing' })).result()
  return [url, known, again.url, untyped].join(' ')
}

interface Named extends BlueprintRef<{ path: string }, { url: string }, 'cut' | 'published'> {
  readonly name: 'publish_video'
}

/** With a type-only import, the name stands for the blueprint. */
export async function rightByName(): Promise<string> {
  const job = await client.start<Named>('publish_video', { path: '/a' }, { priority: 1 })
  const known: 'cut' | 'published' = (await job.status()).currentState
  return (await job.result()).url + known
}

export async function wrongByName(): Promise<void> {
  // @ts-expect-error the blueprint has another name
  await client.start<Named>('publish', { path: '/a' })

  // @ts-expect-error the input is missing
  await client.start<Named>('publish_video')

  // @ts-expect-error `path` is a string
  await client.start<Named>('publish_video', { path: 1 })

  const job = await client.start<Named>('publish_video', { path: '/a' })
  // @ts-expect-error the result has no such field
  String((await job.result()).address)
}

export async function rightAroundJobs(request: Request): Promise<string> {
  const job = client.job('id', publish)
  const decisions: readonly string[] = (await job.approval()).decisions
  await job.approve('approved', { comment: 'fine', visit: 1 })
  await job.retry({ initialData: { path: '/a' }, stateHistory: {} })
  const [event] = await job.history({ limit: 1 }).all(1)
  const at: number | undefined = event?.timestamp
  const whole: readonly ListedJob[] = await client.list({ search: 'x', createdAfter: new Date() }).all()
  const [part] = (await client.list({ fields: ['id', 'status'] }).page()).items
  const status: string | undefined = part?.status
  for await (const one of client.quarantine.list({ errorCode: 'X', olderThanMs: 1 })) String(one.error?.stack)
  const { results } = await client.quarantine.retry({ filter: {}, limit: 5 })
  await client.quarantine.discard({ ids: ['id'] })
  const next: number | null | undefined = (await client.schedules.list())[0]?.nextAt
  const started = await (await client.schedules.run('nightly')).status()
  const left: number | undefined = (await client.account()).quota?.left
  const { body } = await verifyWebhook(await request.text(), request.headers, 'whsec_')
  const code: string | undefined = body.error?.code
  return JSON.stringify([decisions, at, whole, status, results, left, code, next, started.id])
}

export async function wrongAroundJobs(): Promise<void> {
  // @ts-expect-error a decision has to be named
  await client.job('id').approve()

  // @ts-expect-error a visit is a number
  await client.job('id').approve('approved', { visit: '1' })

  // @ts-expect-error there is no such filter
  client.list({ serach: 'x' })

  // @ts-expect-error a job has no such field
  client.list({ fields: ['stauts'] })

  // @ts-expect-error this field was not asked for
  String((await client.list({ fields: ['id'] }).all())[0]?.status)

  // @ts-expect-error all of them has to be said: { filter: {} }
  await client.quarantine.discard({})

  // @ts-expect-error a message is pending, delivered or failed
  client.webhooks.deliveries({ status: 'lost' })

  // @ts-expect-error the quota may be without a limit
  String((await client.account()).quota.left)
}

export async function wrong(): Promise<void> {
  // @ts-expect-error the input is missing
  await client.start(publish)

  // @ts-expect-error `path` is missing
  await client.start(publish, { quality: 'low' })

  // @ts-expect-error `path` is a string
  await client.start(publish, { path: 1 })

  await client.start(publish, {
    // @ts-expect-error [E-07] the error is at the field, not at the blueprint
    path: 5,
  })
  await client.start<Named>('publish_video', {
    // @ts-expect-error [E-07] and so it is with the name
    path: 5,
  })

  // @ts-expect-error there is no such quality
  await client.start(publish, { path: '', quality: 'medium' })

  // @ts-expect-error the input has no such field
  await client.start(publish, { path: '', speed: 1 })

  const job = await client.start(publish, { path: '' })
  // @ts-expect-error the result has no such field
  String((await job.result()).address)

  // @ts-expect-error the blueprint has no such state
  String((await job.status()).currentState === 'lost')

  // @ts-expect-error a function is no input
  await client.start('publish', { call: () => undefined })

  // @ts-expect-error there is no such format
  await client.graph('publish', 'png')
}
