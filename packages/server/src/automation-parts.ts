import type { Clock, Log, Random, Storage } from '@impresario/core'
import type { OutboundPolicy } from '@impresario/webhooks'
import { AgentBook } from './auth/agent-book.ts'
import { AutomationService } from './automations/automation-service.ts'
import { createVault } from './automations/vault.ts'
import type { Settings } from './config/config.ts'
import type { SecretKey } from './config/secret-key.ts'
import type { CallSpans } from './telemetry/call-spans.ts'

interface Ground {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly settings: Settings
  readonly webhookPolicy: OutboundPolicy
  readonly secretKey: SecretKey
  readonly calls: CallSpans | undefined
}

/** Automations, and the agents that own some of them. */
export function createAutomations({ settings, webhookPolicy: policy, secretKey, ...ground }: Ground): {
  readonly agents: AgentBook
  readonly automations: AutomationService
} {
  const { storage, clock, random, log, calls } = ground
  const { timeZone, instanceId, automationsBytesMax, eventsBytesMax } = settings
  const vault = createVault(secretKey.derive('automations'))
  const agents = new AgentBook({ storage, clock, random })
  const scopesOf = (owner: string): ReturnType<AgentBook['scopesOf']> => agents.scopesOf(owner)
  const bounds = { automationsBytesMax, eventsBytesMax }
  const parts = { storage, clock, random, log, policy, timeZone, instanceId, vault, scopesOf, calls, ...bounds }
  return { agents, automations: new AutomationService(parts) }
}
