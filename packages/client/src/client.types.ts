import { createClient, type BlueprintRef } from './index.ts'

// Nothing here runs. Every `@ts-expect-error` stands for a mistake that the compiler has to find.

declare const publish: BlueprintRef<{ path: string; quality?: 'low' | 'high' }, { url: string }, 'cut' | 'published'>

const client = createClient({ url: 'http://localhost' })

export async function right(): Promise<string> {
  const job = await client.start(publish, { path: '/a', quality: 'low' }, { priority: 1 })
  const { url } = await job.result()
  const { current_state: state } = await job.status()
  const known: 'cut' | 'published' = state
  const again = await client.job(job.id, publish).result()
  const untyped: unknown = await (await client.start('publish', { any: 'thing' })).result()
  return [url, known, again.url, untyped].join(' ')
}

export async function wrong(): Promise<void> {
  // @ts-expect-error the input is missing
  await client.start(publish)

  // @ts-expect-error `path` is missing
  await client.start(publish, { quality: 'low' })

  // @ts-expect-error `path` is a string
  await client.start(publish, { path: 1 })

  // @ts-expect-error there is no such quality
  await client.start(publish, { path: '', quality: 'medium' })

  // @ts-expect-error the input has no such field
  await client.start(publish, { path: '', speed: 1 })

  const job = await client.start(publish, { path: '' })
  // @ts-expect-error the result has no such field
  String((await job.result()).address)

  // @ts-expect-error the blueprint has no such state
  String((await job.status()).current_state === 'lost')

  // @ts-expect-error a function is no input
  await client.start('publish', { call: () => undefined })

  // @ts-expect-error there is no such format
  await client.graph('publish', 'png')
}
