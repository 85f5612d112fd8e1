// An assistant with automations of its own: it reads every push, asks a person before it deploys, keeps to a budget, and
// makes itself a reminder.
//
//   npx tsx -C source examples/src/09-automations.ts
//
// oxlint-disable no-console -- this is a whole program, with a server of its own
import { createClient } from 'impresario/client'
import { createServer } from 'impresario/server'
import { createWorker } from 'impresario/worker'

const settings = { apiHost: '127.0.0.1', apiPort: 0, storageUrl: 'memory:', logLevel: 'warn' } as const
const server = createServer({ settings })
const { address } = await server.start()

// What an agent may do is what its scopes say, and what it may spend is what its budget says.
const admin = createClient({ url: address })
const { id: agentId } = await admin.agents.create({
  name: 'claude-assistant',
  scopes: ['automations:*', 'runs:*', 'jobs:*', 'events:publish', 'approvals:decide'],
  onBehalfOf: 'ada',
  budget: { usdPerDay: 0.04 },
})
const { token } = await admin.agents.createToken(agentId, { name: 'example' })
const assistant = createClient({ url: address, token })

// A worker that would ask a language model. It says what that has cost.
const worker = createWorker({ url: address })
worker.task('summarise', async ({ commits }, task) => {
  await task.meter({ usd: 0.02, tokens: 900 })
  const titles = Array.isArray(commits) ? commits.map(String) : []
  return { summary: titles.join(', '), isRisky: titles.some((title) => title.includes('database')) }
})
await worker.start()

const review = await assistant.automations.create({
  title: 'Review of every push to main',
  triggers: [{ event: 'github.push', filter: "event.payload.branch == 'main'" }],
  pipeline: [
    { id: 'read', uses: 'task.summarise', with: { commits: '${event.payload.commits}' } },
    { id: 'ask', if: 'steps.read.isRisky', approval: { message: 'Deploy "${steps.read.summary}"?' } },
    { id: 'tell', uses: 'log', with: { message: 'Deployed: ${steps.read.summary}' } },
  ],
})

/** Publishes a push; gives what the automation made of it. */
async function push(branch: string, commits: readonly string[]) {
  const { id } = await assistant.events.publish('github.push', { branch, commits })
  for (;;) {
    const { runs } = await assistant.events.get(id)
    if (runs !== null) return runs[0]
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Follows a run to its end. Where it asks, a person says yes. */
async function followed(runId: string | null | undefined): Promise<string> {
  const job = assistant.job(runId ?? '')
  for await (const { status, approval } of job.watch()) {
    if (status !== 'waiting_for_human') continue
    console.log(`asked: ${approval?.message ?? ''}`)
    await job.approve('approved')
  }
  const { status, steps, usage } = await assistant.runs.get(job.id)
  return `${status} after ${steps.map((step) => `${step.id} (${step.status})`).join(', ')} for $${usage.usd}`
}

console.log(await followed((await push('main', ['Fix a typo']))?.runId))
console.log(await followed((await push('main', ['Move the database']))?.runId))

// A push to another branch is not for it, and for a third one there is no money left today.
console.log((await push('experiment', ['Try something'])) ?? 'not for main')
console.log((await push('main', ['Fix another typo']))?.outcome)
const { usd, tokens } = await assistant.automations.budget(review.id)
console.log(`$${usd.used} and ${tokens.used} tokens today`)

// It remembers by itself: once, in the time zone of the person it works for.
const reminder = await assistant.automations.create({
  title: 'Ask for a larger budget',
  timezone: 'Europe/Helsinki',
  triggers: [{ once: '2099-12-24T09:00:00' }],
  pipeline: [{ id: 'tell', uses: 'log', with: { message: 'Ada, may I spend more next year?' } }],
})
console.log(new Date((reminder.nextRunAt ?? 0) * 1_000).toISOString())

// Who did what, and what did not run, is on record.
const entries = await assistant.audit.list({ subject: review.id }).all()
for (const { action, onBehalfOf, details } of entries.toReversed()) {
  const why = typeof details['reason'] === 'string' ? `: ${details['reason']}` : ''
  console.log(`${action}${why}${onBehalfOf === null ? '' : ` for ${onBehalfOf}`}`)
}

await worker.stop()
await server.stop()
