/** The first of these words that this one is nearly. */
export function nearWord(word: string, known: Iterable<string>): string | undefined {
  for (const other of known) if (isNear(word, other)) return other
  return undefined
}

/** Short words are near when one letter differs, longer ones when two do. */
function isNear(a: string, b: string): boolean {
  const most = Math.min(a.length, b.length) > 4 ? 2 : 1
  return Math.abs(a.length - b.length) <= most && editsBetween(a, b) <= most
}

/** How many letters to put in, take out or change. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
