/** A name for what takes the place of another, which still has its own: `laptop`, `laptop 2`, `laptop 3`. */
export function nextName(name: string, taken: readonly string[]): string {
  const base = name.replace(/ \d+$/, '')
  for (let number = 2; ; number += 1) {
    const next = `${base.slice(0, 90)} ${number}`
    if (!taken.includes(next)) return next
  }
}
