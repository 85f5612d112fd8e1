import type { Actor } from '@impresario/automations'
import type { AgentBook } from '../auth/agent-book.ts'
import type { AutomationService } from '../automations/automation-service.ts'

interface AgentParts {
  readonly agents: AgentBook
  readonly automations: AutomationService
}

const PAGE = 100

/** Ends everything that goes on in the name of an agent, and then the agent itself: its tokens first, so that nothing new comes. */
export async function removeAgent(
  { agents, automations: { automations } }: AgentParts,
  id: string,
  actor: Actor,
): Promise<void> {
  await agents.remove(id, actor)
  let before: string | undefined
  do {
    const { items, next } = await automations.list({ owner: id, before, limit: PAGE })
    for (const record of items) {
      if (record.status !== 'canceled') await automations.cancel(record.id, actor, 'Its agent was deleted.')
    }
    before = next
  } while (before !== undefined)
}
