import type { StateCall, StateLink, StateNode } from './blueprint.ts'
import { readLinks } from './links.ts'
import type { ScriptState } from './script.ts'
import type { Definition, Rule } from './states.ts'

interface NodeParts {
  readonly name: string
  readonly isStart: boolean
  readonly script: ScriptState
  readonly definition: Definition
}

/** A state as the registry and the graph see it: where it leads, without running it. */
export function nodeOf({ name, isStart, script, definition }: NodeParts): StateNode {
  const outcome = script.kind === 'end' ? { outcome: script.outcome } : {}
  const undo = script.hasUndo === true ? { hasUndo: true } : {}
  const rules = definition.kind === 'end' ? [] : definition.rules
  const links: StateLink[] = []
  const waits = new Set<string>()
  const calls = new Map<string, StateCall>()
  let isDynamic = false
  for (const rule of rules) {
    const read = readLinks(rule.handler)
    const label = labelOf(rule, rules.length)
    const found = [...read.links, ...declared(rule, read.links)]
    links.push(...found.map((link) => labelled(link, label)))
    // Declared targets are taken for all of them: that is what declaring is for.
    for (const wait of read.waits ?? []) waits.add(wait)
    for (const call of read.calls ?? []) calls.set(`${call.kind} ${call.name}`, call)
    isDynamic ||= read.isDynamic && rule.to === undefined
  }
  const known = {
    ...(isDynamic ? { isDynamic } : {}),
    ...(waits.size === 0 ? {} : { waits: [...waits] }),
    ...(calls.size === 0 ? {} : { calls: [...calls.values()] }),
    ...undo,
  }
  return { name, kind: script.kind, isStart, ...outcome, links, ...known }
}

function declared(rule: Rule, read: readonly StateLink[]): readonly StateLink[] {
  const targets = rule.to ?? []
  return targets.filter((to) => !read.some((link) => link.to === to)).map((to) => ({ to }))
}

function labelled(link: StateLink, condition: string | undefined): StateLink {
  if (condition === undefined) return link
  return { ...link, label: link.label === undefined ? condition : `${condition}: ${link.label}` }
}

const LABEL_CHARS_MAX = 60

function labelOf({ condition }: Rule, count: number): string | undefined {
  if (condition === undefined) return count > 1 ? 'otherwise' : undefined
  if (typeof condition === 'string') return condition
  const source = String(condition)
  const body = source.slice(source.indexOf('=>') + 2).trim()
  return body.length <= LABEL_CHARS_MAX && !body.includes('\n') ? body : 'condition'
}
