interface State {
  readonly name: string
  readonly transitions: readonly { readonly to: string }[]
}

/** The states that a job can come to from this one, the nearest first, and those that it cannot. */
export function reachableFrom(
  states: readonly State[],
  from: string,
): { readonly runs: readonly string[]; readonly skipped: readonly string[] } {
  const byName = new Map(states.map((state) => [state.name, state]))
  const runs = new Set(byName.has(from) ? [from] : [])
  for (const name of runs) {
    for (const { to } of byName.get(name)?.transitions ?? []) if (byName.has(to)) runs.add(to)
  }
  return { runs: [...runs], skipped: states.map(({ name }) => name).filter((name) => !runs.has(name)) }
}
