import { didYouMean } from '@impresario/core'
import type { JobRequest, RunnableBlueprint } from '@impresario/core'
import { chain, ImpresarioError } from '@impresario/protocol'
import type { Soon } from '@impresario/protocol'
import type { ScriptRegistry } from './script-registry.ts'

/** Why there can be no such job. */
export interface RequestRefusal {
  readonly code: 'BLUEPRINT_NOT_FOUND' | 'INPUT_REFUSED'
  readonly message: string
  /** What is wrong with the data; empty when there is no such blueprint. */
  readonly problems: readonly string[]
  /** The blueprint that may have been meant, as the end of a sentence. */
  readonly suggestion?: string
}

export type CheckedRequest =
  | { readonly request: JobRequest; readonly blueprint: RunnableBlueprint }
  | { readonly refusal: RequestRefusal }

/** What every new job has to pass, whether a client, a parent or a schedule asks for it. The data may come out changed. */
export function checkRequest(registry: ScriptRegistry, request: JobRequest): Soon<CheckedRequest> {
  mustBeNumbers(request)
  const { blueprint: name, initialData } = request
  const blueprint = registry.find(name)
  if (blueprint === undefined) {
    const suggestion = registry.suggestion(name)
    const message = `There is no blueprint "${name}".${suggestion}`
    return { refusal: { code: 'BLUEPRINT_NOT_FOUND', message, problems: [], suggestion } }
  }
  const unfit = originProblem(blueprint, request)
  if (unfit !== undefined) return { refusal: { code: 'INPUT_REFUSED', message: unfit, problems: [unfit] } }
  return chain(blueprint.validateInput(initialData), (checked): CheckedRequest => {
    if ('value' in checked) {
      const isSame = checked.value === initialData
      return { request: isSame ? request : { ...request, initialData: checked.value }, blueprint }
    }
    const { problems } = checked
    const message = `The initial data does not fit "${name}": ${problems.join('; ')}`
    return { refusal: { code: 'INPUT_REFUSED', message, problems } }
  })
}

/** An aggregator needs the branches that led to it, and an end has nothing to do. */
function originProblem({ name, nodes }: RunnableBlueprint, { from }: JobRequest): string | undefined {
  if (from === undefined) return undefined
  const node = nodes.find((one) => one.name === from.state)
  if (node?.kind === 'handler') return undefined
  const states = nodes.filter(({ kind }) => kind === 'handler').map((one) => one.name)
  const reason = node === undefined ? 'which it does not have' : `which is of the kind ${node.kind}`
  const meant = didYouMean(from.state, states)
  const choice = `Choose one of: ${states.join(', ')}.`
  return `A job of "${name}" cannot begin in the state "${from.state}", ${reason}.${meant} ${choice}`
}

/** Requests of the network cannot hold anything else; those of the same process can. */
function mustBeNumbers(request: JobRequest): void {
  for (const name of NUMBERS) {
    const value = request[name]
    if (value === undefined || Number.isFinite(value)) continue
    throw new ImpresarioError('INVALID_REQUEST', `${name} is ${String(value)}. Give a finite number.`)
  }
}

const NUMBERS = ['priority', 'dispatchTimeoutMs', 'resultTimeoutMs', 'executionTimeoutMs'] as const
