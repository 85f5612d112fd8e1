import type { wire } from '@impresario/client'
import type { Span } from './path.ts'

/**
 * The blueprint with what this job really handed out: names that handlers compute are only known then, and a fan-out is one
 * line with its number.
 */
export function livedBlueprint(blueprint: wire.BlueprintView, spans: readonly Span[]): wire.BlueprintView {
  const tasks = counted(spans, 'task')
  const children = counted(spans, 'child')
  return {
    ...blueprint,
    states: blueprint.states.map((state) => {
      const done = tasks.get(state.name)
      const begun = children.get(state.name)
      // In the code a contract has the name of a variable, too.
      const skills = new Set([...(done?.keys() ?? [])].map(skillOf))
      const planned = state.tasks.filter((name) => !skills.has(skillOf(name)))
      return {
        ...state,
        tasks: [...written(done), ...planned],
        // In the code a child often has the name of a variable.
        children: begun === undefined ? state.children : written(begun),
      }
    }),
  }
}

/** `cut` of `media.cut`. */
function skillOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1)
}

type Counts = ReadonlyMap<string, number>

/** By state and name. */
function counted(spans: readonly Span[], kind: Span['kind']): ReadonlyMap<string, Counts> {
  const found = new Map<string, Map<string, number>>()
  for (const span of spans) {
    if (span.kind !== kind) continue
    const names = found.get(span.state) ?? new Map<string, number>()
    names.set(span.name, (names.get(span.name) ?? 0) + 1)
    found.set(span.state, names)
  }
  return found
}

function written(names: Counts | undefined): readonly string[] {
  return [...(names ?? [])].map(([name, count]) => (count === 1 ? name : `${count} × ${name}`))
}
