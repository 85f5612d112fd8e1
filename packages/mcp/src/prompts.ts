import type { LowServer } from './session.ts'
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'

/** Texts with which a person begins a task, filled with what they say. */
interface Prompt {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly arguments: readonly { readonly name: string; readonly description: string; readonly required: boolean }[]
  readonly text: (values: Readonly<Record<string, string>>) => string
}

const PROMPTS: readonly Prompt[] = [
  {
    name: 'make_automation',
    title: 'Make an automation',
    description: 'Turns a wish in plain words into an automation.',
    arguments: [{ name: 'wish', description: 'What should happen, and when.', required: true }],
    text: ({ wish = '' }) =>
      `Make an automation for this wish: ${wish}\n\n` +
      'Call list_tools to see which steps there are. Write the definition, then call create_automation with preview true. ' +
      'Show me the next firings in my time zone and what each step does. Create it only after I agree.',
  },
  {
    name: 'explain_job',
    title: 'Explain a job',
    description: 'Finds out why a job stands where it stands.',
    arguments: [{ name: 'job_id', description: 'Id of the job.', required: true }],
    text: ({ job_id: id = '' }) =>
      `Why does the job ${id} stand where it stands? Call get_job with include "explain", and with include "history" if that ` +
      'is not enough. Tell me in a few sentences what it waits for, since when, and what I can do.',
  },
  {
    name: 'review_approvals',
    title: 'Go through open questions',
    description: 'Shows what waits for a decision, one by one.',
    arguments: [],
    text: () =>
      'Call list_approvals. Show me each open question with what I need to decide it, ask me for my decision, and pass it on ' +
      'with decide_approval. Never decide for me.',
  },
]

const VALUE_CHARS_MAX = 4_000

export function servePrompts(server: LowServer): void {
  server.setRequestHandler('prompts/list', () => ({
    prompts: PROMPTS.map(({ text: _, arguments: given, ...prompt }) => ({ ...prompt, arguments: [...given] })),
  }))
  server.setRequestHandler('prompts/get', ({ params: { name, arguments: values = {} } }) => {
    const prompt = PROMPTS.find((one) => one.name === name)
    if (prompt === undefined) {
      const known = PROMPTS.map((one) => one.name).join(', ')
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no such prompt. There are ${known}.`)
    }
    const missing = prompt.arguments.find((one) => one.required && (values[one.name] ?? '') === '')
    if (missing !== undefined) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The prompt ${prompt.name} needs "${missing.name}".`)
    }
    const long = Object.entries(values).find(([, value]) => value.length > VALUE_CHARS_MAX)
    if (long !== undefined) {
      const message = `"${long[0].slice(0, 100)}" has more than ${VALUE_CHARS_MAX} characters.`
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, message)
    }
    return {
      description: prompt.description,
      messages: [{ role: 'user' as const, content: { type: 'text' as const, text: prompt.text(values) } }],
    }
  })
}
