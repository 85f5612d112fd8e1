import { expect, test } from 'vitest'
import { createClient } from './client.ts'
import type { Change } from './changes.ts'

const message = (id: string, event: string, data: object): string =>
  `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`

/** Streams one after the other; the last one stays open. Remembers what was asked for. */
function streams(...texts: readonly (readonly string[])[]): {
  readonly asked: (string | null)[]
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
} {
  const asked: (string | null)[] = []
  const fetch = (_url: string, { headers, signal }: RequestInit): Promise<Response> => {
    const pieces = texts[asked.length] ?? []
    asked.push(new Headers(headers).get('last-event-id'))
    const isLast = asked.length >= texts.length
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece))
        if (!isLast) controller.close()
        signal?.addEventListener('abort', () => controller.error(new DOMException('Aborted', 'AbortError')))
      },
    })
    return Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }))
  }
  return { asked, fetch }
}

test('[M-02] [M-01] a stream that is cut is opened again after the last id, and ends with the signal', async () => {
  const job = { job_id: 'a', version: 2, status: 'running', owner: 'acme', blueprint_name: 'b' }
  const changed = message('x-7', 'change', { jobs: [job], more: false, workers: true })
  const { asked, fetch } = streams(
    [message('x-6', 'ready', { resumed: false }), changed.slice(0, 30), changed.slice(30)],
    [': beat\nid: x-9\n\n'],
    [message('x-9', 'ready', { resumed: true }), message('x-12', 'reset', { reason: 'behind' })],
  )
  const stop = new AbortController()
  const seen: Change[] = []
  for await (const change of createClient({ url: 'http://here', fetch }).changes({ signal: stop.signal })) {
    seen.push(change)
    if (change.type === 'reset') stop.abort()
  }
  expect(asked).toEqual([null, 'x-7', 'x-9'])
  expect(seen).toEqual([
    { type: 'ready', id: 'x-6', resumed: false },
    {
      type: 'change',
      id: 'x-7',
      jobs: [{ jobId: 'a', version: 2, status: 'running', owner: 'acme', blueprintName: 'b' }],
      more: false,
      workers: true,
    },
    { type: 'ready', id: 'x-9', resumed: true },
    { type: 'reset', id: 'x-12', reason: 'behind' },
  ])
})

test('[M-01] a refusal that does not pass ends the stream with its error', async () => {
  const refused = (): Promise<Response> =>
    Promise.resolve(Response.json({ error: 'No.', code: 'UNAUTHENTICATED' }, { status: 401 }))
  const changes = createClient({ url: 'http://here', fetch: refused }).changes()
  await expect(changes.next()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
})
