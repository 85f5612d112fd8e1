import type { Data } from '@impresario/protocol'

export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in'
export type Arithmetic = '+' | '-' | '*' | '/' | '%'

/** What a projection runs over: the items of a list, the values of an object, items of nested lists, or items that match. */
export type Over =
  | { readonly by: 'items' }
  | { readonly by: 'values' }
  | { readonly by: 'flattened' }
  | { readonly by: 'matching'; readonly condition: Node }
  | { readonly by: 'slice'; readonly from: number | undefined; readonly to: number | undefined; readonly step: number }

/** One parsed expression. */
export type Node =
  | { readonly kind: 'literal'; readonly value: Data }
  | { readonly kind: 'duration'; readonly ms: number }
  | { readonly kind: 'root' }
  | { readonly kind: 'current' }
  | { readonly kind: 'field'; readonly of: Node; readonly name: string }
  | { readonly kind: 'index'; readonly of: Node; readonly index: number }
  | { readonly kind: 'project'; readonly of: Node; readonly over: Over; readonly each: Node }
  | { readonly kind: 'pipe'; readonly of: Node; readonly into: Node }
  | { readonly kind: 'list'; readonly items: readonly Node[] }
  | { readonly kind: 'object'; readonly entries: readonly { readonly key: string; readonly value: Node }[] }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly Node[]; readonly at: number }
  | { readonly kind: 'reference'; readonly to: Node }
  | { readonly kind: 'not'; readonly operand: Node }
  | { readonly kind: 'negate'; readonly operand: Node }
  | { readonly kind: 'and' | 'or'; readonly left: Node; readonly right: Node }
  | { readonly kind: 'compare'; readonly operator: Comparison; readonly left: Node; readonly right: Node }
  | { readonly kind: 'arithmetic'; readonly operator: Arithmetic; readonly left: Node; readonly right: Node }

/** The nodes directly below one. */
export function partsOf(node: Node): readonly Node[] {
  switch (node.kind) {
    case 'literal':
    case 'duration':
    case 'root':
    case 'current':
      return []
    case 'field':
    case 'index':
      return [node.of]
    case 'project':
      return node.over.by === 'matching' ? [node.of, node.over.condition, node.each] : [node.of, node.each]
    case 'pipe':
      return [node.of, node.into]
    case 'list':
      return node.items
    case 'object':
      return node.entries.map((entry) => entry.value)
    case 'call':
      return node.args
    case 'reference':
      return [node.to]
    case 'not':
    case 'negate':
      return [node.operand]
    default:
      return [node.left, node.right]
  }
}
