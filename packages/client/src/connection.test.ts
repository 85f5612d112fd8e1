import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createClient, type Client, type ClientOptions } from './index.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Answers each call with the next of these; the last one again and again. */
function clientWith(
  answers: readonly Response[],
  options: Partial<ClientOptions> = {},
): { client: Client; times: number[] } {
  const times: number[] = []
  const fetch = async (): Promise<Response> => {
    const answer = answers[Math.min(times.push(Date.now()), answers.length) - 1]
    return answer === undefined ? Response.error() : answer.clone()
  }
  return { client: createClient({ url: 'http://server.test', fetch, ...options }), times }
}

function refusal(status: number, code: string, retryAfter?: string): Response {
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter }
  return Response.json({ error: 'No.', code }, { status, headers })
}

const fine = Response.json({})

/** What became of a call, once all the time that it waits for has passed. */
async function settled(call: Promise<unknown>): Promise<unknown> {
  const outcome: Promise<unknown> = call.catch((error: unknown): unknown => error)
  await vi.runAllTimersAsync()
  return outcome
}

test.for([
  ['seconds', (): string => '7', 7_000],
  ['a date', (): string => new Date(Date.now() + 20_000).toUTCString(), 19_000],
] as const)('[H-04] a retry waits as long as the server asks: %s', async ([, header, atLeastMs]) => {
  const { client, times } = clientWith([refusal(429, 'TOO_MANY_REQUESTS', header()), fine])
  expect(await settled(client.account())).toEqual({})
  const [first = 0, second = 0] = times
  expect(second - first).toBeGreaterThanOrEqual(atLeastMs)
  expect(second - first).toBeLessThan(atLeastMs + 2_000)
})

test('[H-04] what was turned away at the door is sent again, even when it must not be done twice', async () => {
  for (const answer of [refusal(429, 'TOO_MANY_REQUESTS', '1'), refusal(503, 'SHUTTING_DOWN', '1')]) {
    const { client, times } = clientWith([answer, fine])
    expect(await settled(client.webhooks.rotateSecret('ep_1'))).toEqual({})
    expect(times).toHaveLength(2)
  }
})

test('[H-04] what may have been done is not done twice', async () => {
  for (const answer of [refusal(503, 'SOMETHING_OF_A_PROXY', '1'), refusal(500, 'INTERNAL')]) {
    const { client, times } = clientWith([answer, fine])
    expect(await settled(client.webhooks.redeliver('msg_1'))).toBeInstanceOf(Error)
    expect(times).toHaveLength(1)
  }
})

test('[H-04] more patience than the caller has is an error that says for how long', async () => {
  const { client, times } = clientWith([refusal(429, 'TOO_MANY_REQUESTS', '6'), fine], { retryAfterMsMax: 5_000 })
  expect(await settled(client.account())).toMatchObject({ code: 'TOO_MANY_REQUESTS', details: { retry_after_s: 6 } })
  expect(times).toHaveLength(1)
})

test('[H-04] a used-up quota is not asked for again', async () => {
  const { client, times } = clientWith([refusal(429, 'QUOTA_EXCEEDED', '3')])
  expect(await settled(client.start('b'))).toMatchObject({ code: 'QUOTA_EXCEEDED', details: { retry_after_s: 3 } })
  expect(times).toHaveLength(1)
})

test('[H-04] a server that goes on refusing is given up after the retries', async () => {
  const { client, times } = clientWith([refusal(429, 'TOO_MANY_REQUESTS', '0')], { retries: 3 })
  expect(await settled(client.account())).toMatchObject({ code: 'TOO_MANY_REQUESTS' })
  expect(times).toHaveLength(4)
})

test('[H-04] a Retry-After that means nothing changes nothing', async () => {
  const { client, times } = clientWith([refusal(429, 'TOO_MANY_REQUESTS', 'soon'), fine])
  expect(await settled(client.account())).toEqual({})
  expect(times).toHaveLength(2)
})

test('[J-06] [H-08] a name or an id that would lead to another address is refused before it is sent', async () => {
  const { client, times } = clientWith([fine])
  for (const odd of ['.', '..']) {
    const job = client.job('0198c0de-0000-7000-8000-000000000001')
    const calls: readonly (() => Promise<unknown>)[] = [
      () => job.files.delete(odd),
      () => job.files.upload(odd, 'text'),
      () => client.job(odd).cancel(),
      () => client.webhooks.redeliver(odd),
      () => client.schedules.get(odd),
    ]
    for (const call of calls) expect(await settled(call())).toMatchObject({ code: 'INVALID_REQUEST' })
  }
  expect(times).toEqual([])
})
