import { MissingRequiredClientCapabilityError, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { isJsonObject } from '@impresario/protocol'
import type { JsonObject } from '@impresario/protocol'
import { z } from 'zod'
import type { Blueprint } from './blueprint.ts'
import type { Form } from './form.ts'
import { knowsTasks, TASKS_EXTENSION } from './session.ts'
import type { Era, TaskStyle } from './session.ts'
import { ToolRefusal } from './tool.ts'

/** The keyword in the schema of a blueprint's input that says what a call of it as a tool needs. */
const KEYWORD = 'x-mcp'

const needsSchema = z.strictObject({
  requires: z.array(z.enum(['tasks', 'elicitation', 'sampling', 'roots'])).default([]),
  ask: z
    .array(
      z.strictObject({
        key: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'it has letters, digits, _ and -, at most 64'),
        message: z.string().min(1).max(2_000),
        fields: z.array(z.string().min(1).max(100)).min(1).max(20),
      }),
    )
    .max(10)
    .default([]),
})

type Capability = z.output<typeof needsSchema>['requires'][number]

/** What a call of a blueprint needs from the client. */
export interface CallNeeds {
  readonly requires: readonly Capability[]
  /** Asked one after the other before the job starts, where the call did not bring their fields. */
  readonly forms: readonly Form[]
}

/** Refuses a keyword that cannot be understood: a call that ignored it would run without what it needs. */
export function needsOf({ name, input }: Blueprint): CallNeeds {
  const read = needsSchema.safeParse(input?.[KEYWORD] ?? {})
  if (!read.success) {
    const [issue] = read.error.issues
    const where = [KEYWORD, ...(issue?.path ?? [])].join('.')
    throw new ToolRefusal(
      `The input schema of the blueprint ${name} is not valid at ${where}: ${issue?.message ?? ''}.`,
    )
  }
  const properties = isJsonObject(input?.['properties']) ? input['properties'] : {}
  const required = Array.isArray(input?.['required']) ? input['required'] : []
  return {
    requires: read.data.requires,
    forms: read.data.ask.map(({ key, message, fields }) => ({
      key,
      message,
      properties: Object.fromEntries(fields.map((field) => [field, propertyIn(name, properties, field)])),
      required: fields.filter((field) => required.includes(field)),
    })),
  }
}

function propertyIn(name: string, properties: JsonObject, field: string): JsonObject {
  const property = properties[field]
  if (isJsonObject(property)) return property
  throw new ToolRefusal(
    `The input schema of the blueprint ${name} asks for "${field}" in ${KEYWORD}.ask, but has no such property.`,
  )
}

/** Whether it runs as a task only. A keyword that is not valid is reported by the call, not by the list. */
export function runsAsTaskOnly({ input }: Blueprint): boolean {
  const read = needsSchema.safeParse(input?.[KEYWORD] ?? {})
  return read.success && read.data.requires.includes('tasks')
}

/** The schema as assistants see it. What a person is asked for does not have to be in the call. */
export function shownSchema(input: JsonObject): JsonObject {
  const { [KEYWORD]: keyword, ...rest } = input
  const read = needsSchema.safeParse(keyword ?? {})
  const asked = new Set(read.success ? read.data.ask.flatMap(({ fields }) => fields) : [])
  const { required } = rest
  if (asked.size === 0 || !Array.isArray(required)) return rest
  return { ...rest, required: required.filter((field) => typeof field !== 'string' || !asked.has(field)) }
}

/** Refuses a client that cannot do what the call needs, in the words of its revision. */
export function mustMeet({ requires }: CallNeeds, capabilities: JsonObject, era: Era, tasks: TaskStyle): void {
  if (era === 'legacy' && requires.includes('tasks') && tasks === 'none') {
    const message = 'This tool runs as a task only. Call it with the parameter `task`, or use start_job and wait_job.'
    throw new ProtocolError(ProtocolErrorCode.MethodNotFound, message)
  }
  const missing = requires.filter((one) => !has(one, capabilities, tasks))
  if (missing.length === 0) return
  const requiredCapabilities = Object.fromEntries(
    missing.map((one) => (one === 'tasks' ? ['extensions', { [TASKS_EXTENSION]: {} }] : [one, {}])),
  )
  throw new MissingRequiredClientCapabilityError({ requiredCapabilities })
}

function has(one: Capability, capabilities: JsonObject, tasks: TaskStyle): boolean {
  return one === 'tasks' ? tasks !== 'none' || knowsTasks(capabilities) : isJsonObject(capabilities[one])
}
