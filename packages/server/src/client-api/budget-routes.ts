import type { FastifyInstance } from 'fastify'
import type { Actor, Automations, Budget, BudgetState } from '@impresario/automations'
import { z } from 'zod'
import { route } from '../http/route.ts'
import { actorOf } from './actor.ts'
import type { AutomationRoutesOptions } from './automation-routes.ts'
import { automationParams } from './wire-automation.ts'

const limit = z.number().min(0).max(1e12)

export const budgetFields = z
  .object({
    runs_per_day: limit.int().optional(),
    usd_per_day: limit.optional(),
    tokens_per_day: limit.optional(),
    gpu_seconds_per_day: limit.optional(),
  })
  .describe('What may be used on a day by UTC. Without a field there is no limit.')

const measure = z.object({ used: z.number(), limit: z.number().nullable() })
const budgetState = z.object({
  period: z.string().describe('The day by UTC, as YYYY-MM-DD.'),
  runs: z.object({ used: z.number().nullable(), limit: z.number().nullable() }).describe('Counted under a limit only.'),
  usd: measure,
  tokens: measure,
  seconds: measure,
})
export const budgetBody = budgetState.extend({
  agent: budgetState.nullable().describe('The same for the agent that owns the automation, if it has a budget.'),
})

const READ = route({
  tag: 'automations',
  access: 'viewer',
  scope: 'automations:read',
  id: 'getAutomationBudget',
  summary: 'What an automation has used today, and what it may use',
  params: automationParams,
  replies: { 200: { description: 'The budget.', body: budgetBody } },
  refusals: ['NOT_FOUND'],
})

export function registerBudgetRoutes(app: FastifyInstance, { automations }: AutomationRoutesOptions): void {
  app.get<{ Params: { automation_id: string } }>('/automations/:automation_id/budget', READ, (request) =>
    budgetOf(automations.automations, request.params.automation_id, actorOf(request)),
  )
}

export async function budgetOf(
  automations: Automations,
  id: string,
  actor: Actor,
): Promise<z.infer<typeof budgetBody>> {
  const { automation, agent } = await automations.budgets.state(await automations.read(id, actor))
  return { ...wireState(automation), agent: agent === undefined ? null : wireState(agent) }
}

function wireState({ period, runs, usd, tokens, seconds }: BudgetState): z.infer<typeof budgetState> {
  const wired = ({ used, limit: most }: BudgetState['usd']) => ({ used, limit: most ?? null })
  return {
    period,
    runs: { used: runs.used ?? null, limit: runs.limit ?? null },
    usd: wired(usd),
    tokens: wired(tokens),
    seconds: wired(seconds),
  }
}

export function wireBudget(budget: Budget): z.infer<typeof budgetFields> {
  const { runsPerDay, usdPerDay, tokensPerDay, gpuSecondsPerDay } = budget
  return {
    ...(runsPerDay === undefined ? {} : { runs_per_day: runsPerDay }),
    ...(usdPerDay === undefined ? {} : { usd_per_day: usdPerDay }),
    ...(tokensPerDay === undefined ? {} : { tokens_per_day: tokensPerDay }),
    ...(gpuSecondsPerDay === undefined ? {} : { gpu_seconds_per_day: gpuSecondsPerDay }),
  }
}
