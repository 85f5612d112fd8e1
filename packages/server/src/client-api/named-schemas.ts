import { isJsonObject } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import type { z } from 'zod'
import { jsonSchema } from '../http/json-schema.ts'
import * as automations from './wire-automation.ts'
import * as secrets from './secret-routes.ts'
import * as hooks from './wire-hook.ts'
import * as triggers from './wire-trigger.ts'
import * as webhooks from './wire-webhook.ts'

/** What is answered, by the name that programs made from the document call it by. */
const ANSWERS: Readonly<Record<string, z.ZodType>> = {
  Job: schemas.jobBody,
  ListedJob: schemas.listedJob,
  QuarantinedJob: schemas.quarantinedBody,
  ListedQuarantinedJob: schemas.listedQuarantined,
  JobError: schemas.jobError,
  TrailEntry: schemas.trailEntry,
  JobEventReply: schemas.jobEventReply,
  SentEventReply: schemas.sentEventReply,
  JobCompensation: schemas.jobCompensation,
  JobWait: schemas.jobWait,
  JobFailure: schemas.jobFailure,
  OpenApproval: schemas.openApproval,
  Approval: schemas.approvalBody,
  ApprovalReply: schemas.approvalReply,
  CreateJobReply: schemas.createJobReply,
  CreateJobBatchReply: schemas.createJobBatchReply,
  CancelJobReply: schemas.cancelJobReply,
  CommandReply: schemas.commandReply,
  BulkReply: schemas.bulkReply,
  ItemError: schemas.itemError,
  Explanation: schemas.explanationBody,
  ExplainedTask: schemas.explainedTask,
  JobEvent: schemas.jobEvent,
  WorkerEvent: schemas.workerEvent,
  Event: schemas.anyEvent,
  EventCount: schemas.eventCount,
  Durations: schemas.durations,
  Worker: schemas.workerBody,
  Skill: schemas.catalogueEntry,
  Blueprint: schemas.blueprintBody,
  Schedule: schemas.scheduleBody,
  Automation: automations.automationBody,
  Run: automations.runBody,
  ListedRun: automations.listedRun,
  RunStep: automations.stepBody,
  LaunchedRun: automations.launchedBody,
  PublishedEvent: automations.eventBody,
  AuditEntry: automations.auditEntryBody,
  Tool: automations.toolBody,
  Firings: automations.previewBody,
  Condition: triggers.conditionBody,
  Calendar: triggers.calendarBody,
  WebhookSource: hooks.hookBody,
  Secret: secrets.secretBody,
  SavedView: schemas.savedView,
  Dashboard: schemas.dashboardBody,
  Home: schemas.homeBody,
  Status: schemas.statusBody,
  Readiness: schemas.readinessBody,
  Delivery: webhooks.listedDelivery,
  WholeDelivery: webhooks.deliveryBody,
  DeliveryAttempt: webhooks.deliveryAttempt,
  WebhookEndpoint: webhooks.webhookEndpointBody,
  WebhookSecret: webhooks.webhookSecretBody,
}

/** What is asked. */
const REQUESTS: Readonly<Record<string, z.ZodType>> = {
  CreateJobRequest: schemas.createJobRequest,
  EndpointRequest: schemas.endpointRequest,
  CreateJobBatchRequest: schemas.createJobBatchRequest,
  CancelJobRequest: schemas.cancelJobRequest,
  RetryJobRequest: schemas.retryJobRequest,
  BulkRequest: schemas.bulkRequest,
  ApprovalRequest: schemas.approvalRequest,
  AutomationRequest: automations.automationRequest,
  RunNowRequest: automations.runNowRequest,
  SnoozeRequest: automations.snoozeRequest,
  CalendarRequest: triggers.calendarRequest,
  WebhookSourceRequest: hooks.hookRequest,
  SecretRequest: secrets.secretRequest,
  SavedViewRequest: schemas.savedViewRequest,
  ObserveRequest: triggers.observeRequest,
  PublishRequest: automations.publishRequest,
  JobEventRequest: schemas.jobEventRequest,
  SentEventRequest: schemas.sentEventRequest,
  DeclareEndpointRequest: webhooks.declareEndpointRequest,
  RotateSecretRequest: webhooks.rotateSecretRequest,
  RegisterRequest: schemas.registerRequest,
  HeartbeatRequest: schemas.heartbeatRequest,
  TaskBatchRequest: schemas.taskBatchRequest,
  EventRequest: schemas.eventRequest,
}

/** Every schema that has a name, as it stands in the document before names are put in. */
function namedSchemas(): readonly (readonly [string, Json])[] {
  return [
    ...Object.entries(ANSWERS).map(([name, schema]) => [name, asJson(jsonSchema(schema, 'output'))] as const),
    ...Object.entries(REQUESTS).map(([name, schema]) => [name, asJson(jsonSchema(schema))] as const),
  ]
}

/** Boundary: a JSON Schema is JSON. */
function asJson(schema: object): Json {
  return JSON.parse(JSON.stringify(schema)) as Json
}

/**
 * The document with `$ref` wherever something stands that has a name, inside of other named things too. It is recognised by
 * what it says, so that no route has to know of names; a description of its own stays beside the reference.
 */
export function withNames<D extends JsonObject>(document: D): D {
  const named = namedSchemas()
  const names = new Map(named.map(([name, schema]) => [keyOf(schema), name]))
  const { components, ...rest } = document
  const known = isJsonObject(components) && isJsonObject(components['schemas']) ? components['schemas'] : {}
  const own = named.map(([name, schema]): [string, Json] => [name, referring(schema, names, name)])
  return {
    ...document,
    ...asObject(referring(rest, names)),
    components: {
      ...(isJsonObject(components) ? components : {}),
      schemas: { ...known, ...Object.fromEntries(own) },
    },
  }
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value)
}

function asObject(value: Json): JsonObject {
  return isJsonObject(value) ? value : {}
}

/** Names of the same schema whatever its own description is. Schemas without properties are too plain to be recognised. */
function keyOf(value: Json): string | undefined {
  if (!isJsonObject(value) || !('properties' in value)) return undefined
  const { description: _, ...schema } = value
  return JSON.stringify(sorted(schema))
}

/** The tools on the way put keys into another order, and write a constant as a list of one. */
function sorted(value: Json): Json {
  if (isList(value)) return value.map(sorted)
  if (!isJsonObject(value)) return value
  const { const: constant, ...others } = value
  if (typeof constant === 'string') return sorted({ ...others, enum: [constant] })
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  )
}

/** `isNamed`: this very place is where the name is given its meaning. */
function referring(value: Json, names: ReadonlyMap<string | undefined, string>, isNamed?: string): Json {
  if (isList(value)) return value.map((one) => referring(one, names))
  if (!isJsonObject(value)) return value
  const key = keyOf(value)
  const name = key === undefined || isNamed !== undefined ? undefined : names.get(key)
  if (name !== undefined) {
    const { description } = value
    return { $ref: `#/components/schemas/${name}`, ...(description === undefined ? {} : { description }) }
  }
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, referring(inner, names)]))
}
