import { once } from 'node:events'
import { createServer as createReceiver } from 'node:http'
import type { AddressInfo } from 'node:net'
import { blueprint } from '@impresario/core'
import { createClient } from '@impresario/client'
import { createWorker } from '@impresario/worker'
import { onTestFinished, expect, test } from 'vitest'
import { newStorageUrl } from '../../../../test/servers/storage-ground.ts'
import { createServer } from '../server.ts'

const tracingContext = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
}

const inner = blueprint('inner', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) => actions.dispatchTask({ type: 'look', transitions: { success: 'done' } })),
  done: state.end(),
}))

const outer = blueprint('outer', { start: 'look' }, (state) => ({
  look: state
    .when(`context.tracing_context.tracestate == '${tracingContext.tracestate}'`, (context, actions) =>
      actions.transitionTo('child', { seen: context.tracingContext }),
    )
    .otherwise((_context, actions) => actions.transitionTo('failed')),
  child: state.handler((_context, actions) =>
    actions.runBlueprint({ name: 'inner', transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))

test('[I-04] [B-01] a trace goes from the client through handlers and children to workers and webhooks, with its state', async () => {
  const heard: unknown[] = []
  const receiver = createReceiver((request, reply) => {
    heard.push([request.headers['traceparent'], request.headers['tracestate']])
    reply.writeHead(204).end()
    receiver.emit('heard')
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const token = 'a token of the test only'
  const server = createServer({
    blueprints: [outer, inner],
    settings: {
      storageUrl: newStorageUrl(),
      logLevel: 'silent',
      apiHost: '127.0.0.1',
      apiPort: 0,
      clientToken: token,
      workerToken: 'another token of the test',
      webhookAllowHttp: true,
      webhookAllowPrivate: true,
      webhookAllowedPorts: '1024-65535',
    },
  })
  const { address } = await server.start()
  const worker = createWorker({ transport: server.localTransport() })
  const worked: unknown[] = []
  worker.task('look', (_params, task) => {
    worked.push(task.tracingContext)
    return {}
  })
  await worker.start()
  onTestFinished(async () => {
    await worker.stop()
    await server.stop()
    receiver.closeAllConnections()
    receiver.close()
  })
  const webhookUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
  const client = createClient({ url: address, token })
  const told = once(receiver, 'heard')
  const job = await client.start('outer', {}, { tracingContext, webhookUrl })
  expect(await job.result()).toMatchObject({ seen: tracingContext })
  await told
  expect(worked).toEqual([tracingContext])
  expect(heard).toEqual([[tracingContext.traceparent, tracingContext.tracestate]])
  const local = await server.client().start('inner', {}, { tracingContext })
  await local.result()
  expect(worked).toEqual([tracingContext, tracingContext])
})
