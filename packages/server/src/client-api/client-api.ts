import type { FastifyInstance } from 'fastify'
import type { Clock, Storage } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import type { OutboundPolicy, Webhooks } from '@impresario/webhooks'
import { registerAgentRoutes } from './agent-routes.ts'
import type { AgentBook } from '../auth/agent-book.ts'
import { registerAutomationRoutes } from './automation-routes.ts'
import { registerBudgetRoutes } from './budget-routes.ts'
import type { AutomationService } from '../automations/automation-service.ts'
import { registerRunRoutes } from './run-routes.ts'
import type { Gate } from '../http/access.ts'
import { registerAccountRoutes } from './account-routes.ts'
import type { AccountRoutesOptions } from './account-routes.ts'
import { registerAdminRoutes } from './admin-routes.ts'
import type { AdminRoutesOptions } from './admin-routes.ts'
import { ApiDescription, markAliases, registerDocumentRoute } from './api-document.ts'
import { registerApprovalRoutes, registerQuestionRoute } from './approval-routes.ts'
import type { ReloadableRegistry } from '../orchestrator/reloadable-registry.ts'
import { registerChangeRoutes } from './change-routes.ts'
import type { ChangeRoutesOptions } from './change-routes.ts'
import type { Capabilities } from '../auth/capabilities.ts'
import { registerCatalogueRoutes } from './catalogue-routes.ts'
import type { OpenWaits } from '../http/connection.ts'
import { registerDocsPage } from './docs-page.ts'
import { registerDocumentRoutes } from './document-routes.ts'
import type { DocumentsPort } from './document-routes.ts'
import type { FileLinks } from '../files/file-links.ts'
import type { FileService } from '../files/file-service.ts'
import { registerFileRoutes, registerSignedFileRoutes } from './file-routes.ts'
import type { Health } from '../orchestrator/health.ts'
import { registerEventRoutes } from './event-routes.ts'
import { registerHookAddresses, registerHookRoutes } from './hook-routes.ts'
import { registerHistoryRoutes } from './history-routes.ts'
import type { HistoryReader } from '../orchestrator/history.ts'
import type { JobLines } from '../orchestrator/job-lines.ts'
import { registerJobCreationRoutes } from './job-creation-routes.ts'
import { registerJobRoutes } from './job-routes.ts'
import { registerMetricsRoutes } from './metrics-routes.ts'
import type { MetricsRoutesOptions } from './metrics-routes.ts'
import { registerHome } from './home-page.ts'
import { registerPublicRoutes } from './public-routes.ts'
import { registerOldQuarantineRoute, registerQuarantineRoutes } from './quarantine-routes.ts'
import { registerTriggerRoutes } from './trigger-routes.ts'
import { registerSecretRoutes } from './secret-routes.ts'
import { registerQueueRoutes } from './queue-routes.ts'
import { registerScheduleRoutes } from './schedule-routes.ts'
import { registerSystemRoutes } from './system-routes.ts'
import type { SystemParts } from './system-routes.ts'
import { registerViewRoutes } from './view-routes.ts'
import { registerWebhookRoutes } from './webhook-routes.ts'

export interface ClientApiOptions
  extends AdminRoutesOptions, AccountRoutesOptions, MetricsRoutesOptions, ChangeRoutesOptions, SystemParts {
  readonly engine: Engine
  readonly automations: AutomationService
  readonly agents: AgentBook
  readonly storage: Storage
  readonly clock: Clock
  readonly blueprints: ReloadableRegistry
  readonly waits: OpenWaits
  readonly health: Health
  readonly history: HistoryReader
  readonly timeZone: string
  readonly gate: Gate
  readonly capabilities: Capabilities
  readonly clientApiPrefix: string
  readonly publicUrl: string
  readonly webhooks: Webhooks
  readonly webhookPolicy: OutboundPolicy
  /** Only where the server has the documents app. */
  readonly documents?: DocumentsPort | undefined
  readonly fileService: FileService
  readonly fileLinks: FileLinks
  readonly jobLines: JobLines
}

/** The version of this API in its paths. */
const API_VERSION = 'v1'

/** Everything that clients, people and probes call; and the document of all routes. */
export function registerClientApi(app: FastifyInstance, options: ClientApiOptions): ApiDescription {
  const { clientApiPrefix, blueprints } = options
  const registerAll = (scope: FastifyInstance, apiVersion: string | undefined): void => {
    registerJobCreationRoutes(scope, { ...options, apiVersion })
    registerJobRoutes(scope, options)
    registerHistoryRoutes(scope, options)
    registerChangeRoutes(scope, options)
    registerEventRoutes(scope, options)
    registerFileRoutes(scope, options)
    registerQuestionRoute(scope, options)
    registerQuarantineRoutes(scope, options)
    registerWebhookRoutes(scope, options)
    registerCatalogueRoutes(scope, options)
    registerQueueRoutes(scope, options)
    registerScheduleRoutes(scope, options)
    registerAutomationRoutes(scope, options)
    registerBudgetRoutes(scope, options)
    registerRunRoutes(scope, options)
    registerTriggerRoutes(scope, options)
    registerHookRoutes(scope, options)
    registerSecretRoutes(scope, options)
    registerViewRoutes(scope, options)
    registerAgentRoutes(scope, options)
    registerAdminRoutes(scope, options)
    registerAccountRoutes(scope, options)
    registerSystemRoutes(scope, options)
    if (options.documents !== undefined) registerDocumentRoutes(scope, options.documents)
  }
  const own = { prefix: `/${clientApiPrefix}/${API_VERSION}` }
  void app.register(async (scope) => registerAll(scope, API_VERSION), own)
  const bare = { prefix: `/${clientApiPrefix}` }
  void app.register(async (scope) => {
    markAliases(scope)
    registerAll(scope, undefined)
  }, bare)
  void app.register(async (scope) => registerMetricsRoutes(scope, options))
  const description = new ApiDescription(app, blueprints, clientApiPrefix)
  const open = { prefix: '/_public' }
  void app.register(async (scope) => {
    registerPublicRoutes(scope, options)
    registerOldQuarantineRoute(scope, options)
    registerDocumentRoute(scope, description)
  }, open)
  void app.register(async (scope) => registerHome(scope))
  void app.register(async (scope) => registerApprovalRoutes(scope, options), open)
  void app.register(async (scope) => registerSignedFileRoutes(scope, options), open)
  void app.register(async (scope) => registerHookAddresses(scope, options), open)
  void app.register(async (scope) => registerDocsPage(scope, description), open)
  return description
}

/** Routes that exist under every version of the API that a blueprint belongs to. */
const SHARED =
  /^(?:jobs|automations|runs|agents|audit|tools|calendars|hooks|secrets|quarantine|workers|queues|blueprints|dashboard|schedules|webhooks|admin|account|history|events|changes)(?:[/?]|$)/

/**
 * A blueprint's own version of the API has the same routes around its endpoints: a client that starts a job under `/api/v2`
 * looks for it there too.
 */
export function apiVersionRewriter(clientApiPrefix: string, blueprints: ReloadableRegistry): (url: string) => string {
  const start = `/${clientApiPrefix}/v`
  return (url) => {
    if (!url.startsWith(start)) return url
    const end = url.indexOf('/', start.length)
    const version = url.slice(start.length - 1, end === -1 ? undefined : end)
    if (end === -1 || version === API_VERSION || !blueprints.hasApiVersion(version)) return url
    const rest = url.slice(end + 1)
    const [path = ''] = rest.split('?', 1)
    const isEndpoint = blueprints.byEndpoint(path, version) !== undefined
    return SHARED.test(rest) && !isEndpoint ? `/${clientApiPrefix}/${API_VERSION}/${rest}` : url
  }
}
