export { classOfAddress } from './address.ts'
export type { AddressClass } from './address.ts'
export {
  checkUrl,
  mustBeWebhookUrl,
  pinnedLookup,
  readPorts,
  resolveTarget,
  STRICT_POLICY,
  systemResolve,
} from './outbound.ts'
export type { OutboundPolicy, PortRange, Refusal, Resolve, Target } from './outbound.ts'
export type { Deliver, Parcel, Sent } from './deliver.ts'
export { createHttpDeliver, SEND_TIMEOUT_MS } from './http-deliver.ts'
export type { HttpDeliverOptions } from './http-deliver.ts'
export { RETRY_DELAYS_MS } from './schedule.ts'
export type { DeriveSecret } from './signature.ts'
export { DELIVERY_STATUSES } from './delivery.ts'
export type { Attempt, Delivery, DeliveryStatus, DeliverySummary } from './delivery.ts'
export { endpointId } from './endpoint.ts'
export type { Endpoint, EndpointStatus } from './endpoint.ts'
export { RETENTION_MS, WebhookSender } from './sender.ts'
export type { WebhookSenderOptions } from './sender.ts'
export { Webhooks } from './webhooks.ts'
export type { DeliveryQuery, EndpointSecret, Owner, Page, WebhooksOptions } from './webhooks.ts'
