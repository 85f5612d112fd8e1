import type { ServerContext } from '@modelcontextprotocol/server'
import type { Json, JsonObject } from '@impresario/protocol'
import { isJsonObject } from '@impresario/protocol'
import type { Blueprint } from './blueprint.ts'
import { callBlueprint } from './blueprint-call.ts'
import { BOUNDS } from './bounds.ts'
import { mustMeet, needsOf } from './call-needs.ts'
import { filledBy, formRequest, nextForm } from './form.ts'
import type { Filled, Form } from './form.ts'
import type { Line } from './line.ts'
import { knowsForms, knowsTasks } from './session.ts'
import type { Era, TaskStyle } from './session.ts'
import { ToolRefusal } from './tool.ts'
import type { ToolContext } from './tool.ts'

/** What goes through the client between two rounds of a call. */
export interface CallState {
  readonly tool: string
  /** The job, once there is one. */
  readonly jobId?: string
  /** What forms brought before there is one. */
  readonly filled?: Filled
}

/** A request to call a blueprint as a tool. */
export interface BlueprintRequest {
  readonly blueprint: Blueprint
  readonly era: Era
  readonly params: { readonly arguments?: unknown; readonly task?: unknown }
  readonly capabilities: JsonObject
  readonly ctx: ServerContext
  /** For clients of 2025-11-25 that can ask people. */
  readonly line: Line | undefined
  readonly seal: (state: CallState) => Promise<string>
}

/** Checks what the call needs, gathers what only a person can give, and runs the blueprint. */
export async function serveBlueprint(request: BlueprintRequest, context: ToolContext): Promise<JsonObject> {
  const { blueprint, era, params, capabilities, ctx, line, seal } = request
  const needs = needsOf(blueprint)
  const tasks = tasksFor(era, capabilities, params)
  mustMeet(needs, capabilities, era, tasks)
  const told = ctx.mcpReq.requestState<CallState>()
  const state = told?.tool === blueprint.name ? told : undefined
  const canAsk = era === 'modern' && knowsForms(capabilities)
  const args: JsonObject = isJsonObject(params.arguments) ? params.arguments : {}
  let given: JsonObject = {}
  if (state?.jobId === undefined && (canAsk || line?.mode === 'form')) {
    const filled = await gather(request, needs.forms, args, state?.filled ?? { given: {}, done: [] }, context.signal)
    if ('form' in filled) {
      return {
        resultType: 'input_required',
        inputRequests: { [filled.form.key]: { method: 'elicitation/create', params: formRequest(filled.form) } },
        requestState: await seal({ tool: blueprint.name, filled: filled.soFar }),
      }
    }
    given = filled.given
  }
  const call = {
    blueprint: blueprint.name,
    args: { ...args, ...given },
    jobId: state?.jobId,
    responses: ctx.mcpReq.inputResponses ?? {},
    tasks,
    isTaskOnly: needs.requires.includes('tasks'),
    canAsk,
    line,
    seal: (jobId: string) => seal({ jobId, tool: blueprint.name }),
  }
  return (await callBlueprint(call, context)) as JsonObject
}

/** What the forms brought; or, where a new round has to bring it, the form to ask and what is known so far. */
async function gather(
  { ctx, line }: BlueprintRequest,
  forms: readonly Form[],
  args: JsonObject,
  before: Filled,
  signal: AbortSignal,
): Promise<Filled | { readonly form: Form; readonly soFar: Filled }> {
  // Boundary: the answers of a client are JSON.
  const responses = (ctx.mcpReq.inputResponses ?? {}) as Readonly<Record<string, Json>>
  let filled = before
  for (let form = nextForm(forms, args, filled); form !== undefined; form = nextForm(forms, args, filled)) {
    const response = line === undefined ? responses[form.key] : await askOver(line, form, signal)
    const more = filledBy(form, filled, response)
    if (more !== undefined) filled = more
    else if (line === undefined) return { form, soFar: filled }
    else throw new ToolRefusal(`There is no valid answer to: ${form.message} Nothing was started.`)
  }
  return filled
}

function askOver(line: Line, form: Form, signal: AbortSignal): Promise<JsonObject | undefined> {
  const until = AbortSignal.any([signal, AbortSignal.timeout(BOUNDS.askSecondsMax * 1_000)])
  return line.ask(formRequest(form), undefined, until).heard
}

function tasksFor(era: Era, capabilities: JsonObject, params: BlueprintRequest['params']): TaskStyle {
  if (era === 'modern') return knowsTasks(capabilities) ? 'extension' : 'none'
  return params.task === undefined ? 'none' : 'older'
}
