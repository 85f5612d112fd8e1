import * as dagre from '@dagrejs/dagre'
import type { wire } from '@impresario/client'

type BlueprintState = wire.BlueprintView['states'][number]

export interface PlacedState {
  readonly state: BlueprintState
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface PlacedStep {
  readonly from: string
  readonly to: string
  readonly label: string
  readonly points: readonly { readonly x: number; readonly y: number }[]
  readonly labelAt: { readonly x: number; readonly y: number } | undefined
}

export interface Layout {
  readonly states: readonly PlacedState[]
  readonly steps: readonly PlacedStep[]
  readonly width: number
  readonly height: number
}

/** What we use of the library; its own types cannot be read by this compiler. */
interface Placement {
  readonly Graph: new () => PlacementGraph
  readonly layout: (graph: PlacementGraph) => void
}

interface PlacementGraph {
  setGraph(options: object): void
  setDefaultEdgeLabel(label: () => object): void
  setNode(name: string, box: { readonly width: number; readonly height: number }): void
  setEdge(from: string, to: string, label: object): void
  graph(): { readonly width?: number; readonly height?: number }
  node(name: string): Partial<Omit<PlacedState, 'state'>>
  edge(from: string, to: string): { readonly points?: PlacedStep['points']; readonly x?: number; readonly y?: number }
}

const { Graph, layout } = dagre as unknown as Placement

const WIDTH = 184
const HEIGHT = 44
const LINE = 16
const CHARS_MAX = 24

/** Where everything goes. Several steps between the same states are one line with all their labels. */
export function layoutOf({ states }: Pick<wire.BlueprintView, 'states'>): Layout {
  const graph = new Graph()
  graph.setGraph({ rankdir: 'TB', nodesep: 36, ranksep: 44, marginx: 16, marginy: 16 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const state of states) {
    graph.setNode(state.name, { width: WIDTH, height: HEIGHT + linesOf(state).length * LINE })
  }
  const known = new Set(states.map(({ name }) => name))
  const labels = new Map<string, { from: string; to: string; labels: string[] }>()
  for (const { name, transitions } of states) {
    for (const { to, label } of transitions) {
      if (!known.has(to)) continue
      const step = labels.get(`${name}\n${to}`) ?? { from: name, to, labels: [] }
      if (label !== null) step.labels.push(label)
      labels.set(`${name}\n${to}`, step)
    }
  }
  for (const { from, to, labels: words } of labels.values()) {
    const label = shortened(words.join(', '))
    graph.setEdge(from, to, {
      label,
      width: label === '' ? 0 : label.length * 6 + 10,
      height: label === '' ? 0 : 16,
      labelpos: 'c',
    })
  }
  layout(graph)
  const { width = 0, height = 0 } = graph.graph()
  return {
    width,
    height,
    states: states.map((state) => {
      const { x = 0, y = 0, width: w = 0, height: h = 0 } = graph.node(state.name)
      return { state, x, y, width: w, height: h }
    }),
    steps: [...labels.values()].map(({ from, to, labels: words }) => {
      const { points = [], x, y } = graph.edge(from, to)
      const label = shortened(words.join(', '))
      return {
        from,
        to,
        label,
        points,
        labelAt: x === undefined || y === undefined || label === '' ? undefined : { x, y },
      }
    }),
  }
}

/** What a state hands out, one line each. */
export function linesOf(state: BlueprintState): readonly { readonly kind: string; readonly text: string }[] {
  return [
    ...state.tasks.map((text) => ({ kind: 'task', text })),
    ...state.children.map((text) => ({ kind: 'child', text })),
    ...(state.asks_person ? [{ kind: 'person', text: '' }] : []),
    ...state.waits.map((text) => ({ kind: 'wait', text })),
  ].slice(0, 4)
}

export function shortened(text: string, max = CHARS_MAX): string {
  return text.length > max ? `${text.slice(0, max - 1)}…` : text
}

/** A line through the points, with round corners. */
export function curve(points: PlacedStep['points']): string {
  const [first, ...rest] = points
  if (first === undefined) return ''
  let path = `M${first.x},${first.y}`
  for (const [index, point] of rest.entries()) {
    const next = rest[index + 1]
    if (next === undefined) path += ` L${point.x},${point.y}`
    else path += ` Q${point.x},${point.y} ${(point.x + next.x) / 2},${(point.y + next.y) / 2}`
  }
  return path
}
