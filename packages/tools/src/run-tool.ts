import { stringifyExact, unlessAborted } from '@impresario/protocol'
import type { Data, DataObject } from '@impresario/protocol'
import { marksIn, nestingProblem, redacted, withSecrets } from '@impresario/automations'
import { ToolError } from './tool.ts'
import type { BuiltInTool, ToolCall } from './tool.ts'
import type { RegisteredTool } from './tool-registry.ts'

/** A tool's answer that is longer than this fails the step: it would travel with the run from then on. */
const OUTPUT_CHARS_MAX = 262_144

export interface RunToolOptions {
  readonly registered: RegisteredTool
  /** Values of the secrets that the input may name. */
  readonly secrets: Readonly<Record<string, string>>
  readonly call: ToolCall
}

/**
 * Calls a tool of this process: checks its input, runs it, checks its output. Secrets are put in for the call and taken out of
 * whatever comes back. Whatever the tool does wrong is a `ToolError` of its step.
 */
export async function runTool(input: DataObject, { registered, secrets, call }: RunToolOptions): Promise<Data> {
  const { tool, checkInput, checkOutput } = registered
  if (tool.isKeeping === true && marksIn(input).length > 0) {
    throw new ToolError('INVALID_INPUT_ERROR', `${tool.name} keeps what it is given, so it takes no secrets.`)
  }
  const given = withSecrets(input, (name) => {
    const value = Object.hasOwn(secrets, name) ? secrets[name] : undefined
    if (value === undefined) throw new ToolError('INVALID_INPUT_ERROR', `There is no secret "${name}".`)
    return value
  })
  const [problem] = checkInput(given)
  if (problem !== undefined) {
    throw new ToolError('INVALID_INPUT_ERROR', redacted(`The input of ${tool.name} does not fit: ${problem}`, secrets))
  }
  const quiet: ToolCall = {
    ...call,
    log: (message, details) => call.log(redacted(message, secrets), redacted(details, secrets)),
  }
  const output = await answerOf(tool as BuiltInTool, given, quiet, secrets)
  // Before anything goes through it: each way through it has its own depth at which the stack ends.
  const tooDeep = nestingProblem('output', output)
  if (tooDeep !== undefined) throw new ToolError('PERMANENT_ERROR', `${tool.name}: ${tooDeep.message}`)
  const text = safeText(output)
  if (text === undefined) throw new ToolError('PERMANENT_ERROR', `${tool.name} gave something that is not JSON.`)
  if (text.length > OUTPUT_CHARS_MAX) {
    throw new ToolError(
      'PERMANENT_ERROR',
      `${tool.name} gave ${text.length} characters; ${OUTPUT_CHARS_MAX} are allowed.`,
    )
  }
  const [wrong] = checkOutput(output)
  if (wrong !== undefined) {
    throw new ToolError('PERMANENT_ERROR', redacted(`The output of ${tool.name} does not fit: ${wrong}`, secrets))
  }
  return redacted(output, secrets)
}

async function answerOf(
  tool: BuiltInTool,
  input: DataObject,
  call: ToolCall,
  secrets: Readonly<Record<string, string>>,
): Promise<Data> {
  try {
    const stopped = (): Error => new ToolError('TRANSIENT_ERROR', `${tool.name} was stopped before it answered.`)
    return await unlessAborted(Promise.resolve(tool.run(input, call)), call.signal, stopped)
  } catch (error) {
    if (error instanceof ToolError) throw new ToolError(error.code, redacted(error.message, secrets))
    const message = error instanceof Error ? error.message : String(error)
    throw new ToolError('TRANSIENT_ERROR', redacted(`${tool.name} failed: ${message}`, secrets))
  }
}

function safeText(value: unknown): string | undefined {
  try {
    return stringifyExact(value)
  } catch {
    return undefined
  }
}
