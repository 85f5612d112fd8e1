/** The word of the list that is nearest to this one, if one is near. The case of letters does not count. */
export function nearWord(word: string, known: Iterable<string>): string | undefined {
  const wanted = word.toLowerCase()
  let nearest: string | undefined
  let fewest = Infinity
  for (const other of known) {
    const shorter = Math.min(word.length, other.length)
    if (shorter < 2 || Math.abs(word.length - other.length) > 2) continue
    const most = shorter > 4 ? 2 : 1
    const edits = editsBetween(wanted, other.toLowerCase())
    if (edits > most || edits >= fewest) continue
    nearest = other
    fewest = edits
  }
  return nearest
}

/** The end of an error about an unknown name: a sentence with a space before it, or nothing. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const meant = nearWord(word, known)
  return meant === undefined ? '' : ` Did you mean "${meant}"?`
}

/** How many letters to insert, remove or change. Two letters that changed places count as one. */
function editsBetween(a: string, b: string): number {
  let before: readonly number[] = []
  let row: readonly number[] = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const isSwap = i > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const costs = [at(row, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1), at(row, j) + 1, at(next, j - 1) + 1]
      next.push(Math.min(...costs, isSwap ? at(before, j - 2) + 1 : Infinity))
    }
    before = row
    row = next
  }
  return at(row, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] as number
}
