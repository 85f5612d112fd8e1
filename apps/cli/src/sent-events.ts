import { readData } from './arguments.ts'
import { EXIT } from './failure.ts'
import { jobIdOf } from './job-prefix.ts'
import { printJson } from './screen.ts'
import { withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'

export interface SendOptions extends GlobalOptions {
  readonly data?: string
  readonly id?: string
}

export interface PublishOptions extends SendOptions {
  readonly key: string
}

export function sendToJob(given: string, topic: string, options: SendOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const jobId = await jobIdOf(client, given)
    await client.job(jobId).send(topic, await payloadOf(options), { eventId: options.id })
    if (screen.isJson) printJson(screen, { job_id: jobId, topic })
    else screen.out(`Sent "${topic}" to ${jobId}.`)
    return EXIT.ok
  })
}

export function publishEvent(topic: string, options: PublishOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { key, id } = options
    await client.send(topic, await payloadOf(options), { key, eventId: id })
    if (screen.isJson) printJson(screen, { topic, key })
    else screen.out(`Sent "${topic}" to the jobs that wait for "${key}".`)
    return EXIT.ok
  })
}

function payloadOf({ data }: SendOptions): Promise<Awaited<ReturnType<typeof readData>>> | Record<string, never> {
  return data === undefined ? {} : readData('--data', data)
}
