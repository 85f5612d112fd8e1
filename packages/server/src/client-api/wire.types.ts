import type { wire } from '@impresario/client'
import type * as schemas from '@impresario/protocol/schemas'
import type { z } from 'zod'
// oxlint-disable-next-line no-restricted-imports -- one type test uses the tool of another
import type { Same } from '../../../protocol/src/schemas.types.ts'
import type { accountReply } from './account-routes.ts'
import type { queueBody } from './queue-routes.ts'
import type { clientListReply, systemReply } from './system-routes.ts'
import type { workerExplanationReply } from './worker-explanation.ts'
import type * as webhooks from './wire-webhook.ts'

// Nothing here runs. The client describes replies as interfaces, without zod. One that differs from the schema that the
// server documents does not compile.

type Out<Schema extends z.ZodType> = z.output<Schema>
/** `Omit` would widen objects that may have more fields than the declared ones. */
type OmitKnown<Schema extends z.ZodType, Name> = {
  [Key in keyof Out<Schema> as string extends Key ? never : Key extends Name ? never : Key]: Out<Schema>[Key]
}
/** Described in words only. */
type Loose = 'last_error' | 'explanation'

export const VIEWS: {
  readonly account: Same<wire.AccountBody, Out<typeof accountReply>>
  readonly system: Same<wire.SystemBody, Out<typeof systemReply>>
  readonly clients: Same<wire.ConfiguredClientBody[], Out<typeof clientListReply>>
  readonly queue: Same<wire.QueueBody, Out<typeof queueBody>>
  readonly workerExplanation: Same<wire.WorkerExplanationBody, Out<typeof workerExplanationReply>>
  readonly worker: Same<wire.WorkerView, Out<typeof schemas.workerBody>>
  readonly blueprint: Same<wire.BlueprintView, Out<typeof schemas.blueprintBody>>
  readonly explanation: Same<Omit<wire.ExplanationBody, 'tasks'>, OmitKnown<typeof schemas.explanationBody, 'tasks'>>
  readonly explainedTask: Same<Omit<wire.ExplainedTaskBody, Loose>, OmitKnown<typeof schemas.explainedTask, Loose>>
  readonly attempt: Same<wire.DeliveryAttemptBody, Out<typeof webhooks.deliveryAttempt>>
  readonly delivery: Same<wire.DeliveryBody, Out<typeof webhooks.listedDelivery>>
  readonly wholeDelivery: Same<wire.WholeDeliveryBody, Out<typeof webhooks.deliveryBody>>
  readonly endpoint: Same<wire.EndpointBody, Out<typeof webhooks.webhookEndpointBody>>
  readonly enabledEndpoint: Same<wire.EnabledEndpointBody, Out<typeof webhooks.enabledEndpointBody>>
  readonly secret: Same<wire.WebhookSecretBody, Out<typeof webhooks.webhookSecretBody>>
} = {
  account: true,
  system: true,
  clients: true,
  queue: true,
  workerExplanation: true,
  worker: true,
  blueprint: true,
  explanation: true,
  explainedTask: true,
  attempt: true,
  delivery: true,
  wholeDelivery: true,
  endpoint: true,
  enabledEndpoint: true,
  secret: true,
}
