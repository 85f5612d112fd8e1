import type { StateCall, StateLink, StateNode } from './blueprint.ts'

/** A mid grey that can be read on white and on black alike. */
export const GRAPH_NEUTRAL = '#6e7781'
const CURRENT = '#3b82f6'
const OUTCOME_COLOURS: Readonly<Record<string, string>> = {
  finished: '#2da44e',
  failed: '#e5534b',
  error: '#d4772f',
  cancelled: '#8b949e',
}

export interface DrawableBlueprint {
  readonly name: string
  readonly nodes: readonly StateNode[]
}

export interface DotOptions {
  /** The state to highlight, for the graph of a job. */
  readonly current?: string | undefined
}

/** The blueprint as a graph in the DOT language: the start has an arrow of its own, ends have a double line. */
export function toDot(blueprint: DrawableBlueprint, options: DotOptions = {}): string {
  const font = `fontname="Helvetica,Arial,sans-serif"`
  const lines = [
    `digraph ${quote(blueprint.name)} {`,
    `  graph [rankdir=TB, bgcolor="transparent", nodesep=0.45, ranksep=0.55, pad=0.2]`,
    `  node [shape=box, style="rounded", ${font}, fontsize=13, margin="0.2,0.1", penwidth=1.4, color="${GRAPH_NEUTRAL}", fontcolor="${GRAPH_NEUTRAL}"]`,
    `  edge [${font}, fontsize=11, penwidth=1.2, arrowsize=0.8, color="${GRAPH_NEUTRAL}", fontcolor="${GRAPH_NEUTRAL}"]`,
  ]
  const names = new Set(blueprint.nodes.map((node) => node.name))
  for (const node of blueprint.nodes) lines.push(...nodeLines(node, node.name === options.current))
  const links = blueprint.nodes.flatMap((node) => node.links)
  // Only drawn when something leads there: every blueprint has it.
  if (!names.has('failed') && links.some((link) => link.to === 'failed')) {
    lines.push(...nodeLines(IMPLICIT_FAILED, options.current === 'failed'))
  }
  for (const node of blueprint.nodes) lines.push(...mergedLinks(node.links).map((link) => edgeLine(node.name, link)))
  lines.push('}', '')
  return lines.join('\n')
}

const IMPLICIT_FAILED: StateNode = { name: 'failed', kind: 'end', isStart: false, outcome: 'failed', links: [] }

function nodeLines(node: StateNode, isCurrent: boolean): readonly string[] {
  const styles = ['rounded']
  if (node.isDynamic === true) styles.push('dashed')
  const attributes: string[] = []
  if (node.kind === 'end') {
    const colour = OUTCOME_COLOURS[node.outcome ?? 'finished'] ?? GRAPH_NEUTRAL
    attributes.push('peripheries=2', `color="${colour}"`, `fontcolor="${colour}"`)
  }
  if (node.kind === 'aggregator') attributes.push('penwidth=2.4')
  if (isCurrent) {
    styles.push('filled')
    attributes.push(`fillcolor="${CURRENT}33"`, `color="${CURRENT}"`, 'penwidth=2.4')
  }
  // An hourglass would need a font; the words say it too.
  const words = [
    ...(node.calls ?? []).map(callWords),
    ...(node.waits ?? []).map((wait) => `waits: ${wait}`),
    ...(node.hasUndo === true ? ['can be undone'] : []),
  ]
  if (words.length > 0) attributes.push(`label=${quote([node.name, ...words].join('\n'))}`)
  attributes.push(`style="${styles.join(',')}"`)
  const line = `  ${quote(node.name)} [${attributes.join(', ')}]`
  if (!node.isStart) return [line]
  // The empty name is free: no state may have it.
  return [line, `  "" [shape=point, width=0.14, color="${GRAPH_NEUTRAL}"]`, `  "" -> ${quote(node.name)}`]
}

function callWords({ kind, name }: StateCall): string {
  return kind === 'person' ? 'asks a person' : `${kind}: ${name}`
}

/** One arrow per pair of states: parallel arrows with a word each are hard to follow. */
function mergedLinks(links: readonly StateLink[]): readonly StateLink[] {
  const merged = new Map<string, StateLink>()
  for (const link of links) {
    const known = merged.get(link.to)
    const label = [known?.label, link.label].filter((part) => part !== undefined).join('\n')
    const isFanIn = known?.isFanIn === true || link.isFanIn === true
    merged.set(link.to, { to: link.to, ...(label === '' ? {} : { label }), isFanIn })
  }
  return [...merged.values()]
}

function edgeLine(from: string, { to, label, isFanIn }: StateLink): string {
  const attributes: string[] = []
  // Spaces keep the words clear of the line.
  if (label !== undefined) attributes.push(`label=${quote(` ${label.replaceAll('\n', ' \n ')} `)}`)
  if (isFanIn === true) attributes.push('style=bold', 'arrowhead="normalnormal"')
  return `  ${quote(from)} -> ${quote(to)}${attributes.length === 0 ? '' : ` [${attributes.join(', ')}]`}`
}

function quote(text: string): string {
  return `"${text
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`)}"`
}
