import { didYouMean } from '../text/near-word.ts'
import type { RunnableBlueprint, StateNode } from './blueprint.ts'

export interface Check {
  /** Each stops the registration. */
  readonly problems: readonly string[]
  /** Each belongs into the log. */
  readonly warnings: readonly string[]
}

/** What can be said of a blueprint without running it. Each sentence names the state and the fix. */
export function checkBlueprint(blueprint: Pick<RunnableBlueprint, 'nodes'>): Check {
  const nodes = new Map(blueprint.nodes.map((node) => [node.name, node]))
  const problems = [
    ...startProblems(blueprint.nodes),
    ...[...nodes.values()].flatMap((node) => linkProblems(node, nodes)),
  ]
  const ends = blueprint.nodes.filter((node) => node.kind === 'end')
  if (ends.length === 0) problems.push('it has no end state. Add one with state.end().')
  if (problems.length > 0) return { problems, warnings: [] }

  const reached = reachedFrom(blueprint.nodes, nodes)
  const warnings = [...reached].flatMap(deadEndWarnings)
  // What is chosen while running can lead anywhere, so nothing is known to be out of reach.
  if ([...reached].some((node) => node.isDynamic === true)) return { problems, warnings }
  if (!ends.some((end) => reached.has(end))) {
    problems.push(`no end state can be reached from the start. Let a state lead to "${ends[0]?.name}".`)
  }
  for (const node of blueprint.nodes) {
    const { name } = node
    // Statuses without a transition lead to `failed` by themselves.
    if (!reached.has(node) && name !== 'failed') {
      warnings.push(`state "${name}": nothing leads to it. Remove it, or declare the way with { to: ['${name}'] }.`)
    }
  }
  return { problems, warnings }
}

function startProblems(nodes: readonly StateNode[]): readonly string[] {
  const starts = nodes.filter((node) => node.isStart).length
  return starts === 1 ? [] : [`it has ${starts} start states. Exactly one is needed: name it as \`start\`.`]
}

function linkProblems(node: StateNode, nodes: ReadonlyMap<string, StateNode>): readonly string[] {
  return node.links.flatMap(({ to, isFanIn }) => {
    const target = nodes.get(to)
    if (target === undefined) {
      if (to === 'failed' && isFanIn !== true) return []
      const meant = didYouMean(to, nodes.keys())
      return [
        `state "${node.name}": it leads to "${to}", which does not exist.${meant} Add that state or correct the name.`,
      ]
    }
    if (isFanIn === true && target.kind !== 'aggregator') {
      return [
        `state "${node.name}": it sends branches into "${to}", which is no aggregator. Make it one with state.aggregator(…).`,
      ]
    }
    return []
  })
}

function reachedFrom(list: readonly StateNode[], nodes: ReadonlyMap<string, StateNode>): ReadonlySet<StateNode> {
  const reached = new Set<StateNode>()
  const open = list.filter((node) => node.isStart)
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (reached.has(node)) continue
    reached.add(node)
    for (const { to } of node.links) {
      const target = nodes.get(to)
      if (target !== undefined) open.push(target)
    }
  }
  return reached
}

function deadEndWarnings(node: StateNode): readonly string[] {
  if (node.kind === 'end' || node.isDynamic === true || node.links.length > 0) return []
  return [`state "${node.name}": its handler chooses no action. Return one, or make it an end state.`]
}
