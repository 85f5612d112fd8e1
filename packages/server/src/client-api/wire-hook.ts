import { HOOK_PRESETS } from '@impresario/automations'
import type { HookRecord } from '@impresario/automations'
import { z } from 'zod'
import { page } from './wire-automation.ts'

export const hookParams = z.object({ hook: z.string().describe('Name of a source of webhooks.') })
export const addressParams = z.object({ address: z.string().describe('The secret part of the address of a source.') })
export const hookListQuery = z.looseObject(page)

/** What is inside is checked by the reader of sources, which names every problem. */
export const hookRequest = z
  .looseObject({
    preset: z.enum(HOOK_PRESETS).describe('Who sends, or how it is signed.'),
    secret: z.string().min(8).max(500).optional().describe('As the sender has it. Without it, a new one is made.'),
    description: z.string().max(500).optional(),
    topic: z.string().min(1).max(2_000).optional().describe('An expression over `body` and `headers`.'),
    payload: z.string().min(1).max(2_000).optional().describe('An expression over `body` and `headers`.'),
    signature: z.record(z.string(), z.unknown()).optional().describe('For the presets hmac and token; see the guide.'),
  })
  .describe('A source of webhooks as it is written.')

export const hookBody = z.object({
  name: z.string(),
  owner: z.string(),
  preset: z.enum(HOOK_PRESETS),
  description: z.string(),
  url: z.string().describe('Where its sender sends to. Who knows it can send, but needs the secret too.'),
  topic: z.string().nullable(),
  payload: z.string().nullable(),
  created_at: z.number().describe('Unix seconds.'),
  updated_at: z.number().describe('Unix seconds.'),
  updated_by: z.string(),
  secret: z.string().optional().describe('The secret that was made. It is shown this once.'),
})
export const hookList = z.array(hookBody)

export const arrivedBody = z.object({
  event_id: z.string().optional(),
  topic: z.string().optional(),
  challenge: z.string().optional().describe('What Slack sent to test the address.'),
})

/** Where hooks come in. */
const HOOK_PATH = '/_public/hooks'

export function wireHook(record: HookRecord, publicUrl: string, secret?: string): z.infer<typeof hookBody> {
  const { name, owner, preset, description, address, topic, payload, createdAt, updatedAt, updatedBy } = record
  return {
    name,
    owner,
    preset,
    description,
    url: `${publicUrl}${HOOK_PATH}/${address}`,
    topic: topic ?? null,
    payload: payload ?? null,
    created_at: createdAt / 1_000,
    updated_at: updatedAt / 1_000,
    updated_by: updatedBy,
    ...(secret === undefined ? {} : { secret }),
  }
}
