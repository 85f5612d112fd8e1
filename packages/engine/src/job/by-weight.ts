/** So many are begun together at first; twice as many each time, as long as they are light. */
const TOGETHER = 16

/**
 * Does one after the other, a few at a time, until what came of them weighs as much as is allowed. Gives what came of them, and
 * those that were not begun. The first few are done in any case.
 */
export async function byWeight<Q, A>(
  asked: readonly Q[],
  weightMax: number,
  work: (one: Q) => Promise<A | undefined> | A,
  weigh: (answer: A) => number,
): Promise<{ readonly answers: readonly A[]; readonly left: readonly Q[] }> {
  const answers: A[] = []
  let weight = 0
  let at = 0
  for (let together = TOGETHER; at < asked.length && weight < weightMax; together *= 2) {
    const begun = asked.slice(at, at + together).map(work)
    const found = begun.some((one) => one instanceof Promise) ? await Promise.all(begun) : (begun as readonly A[])
    at += together
    for (const answer of found) {
      if (answer === undefined) continue
      answers.push(answer)
      weight += weigh(answer)
    }
    // Heavy ones are not begun by the dozen.
    if (weight > weightMax / 8) together = TOGETHER / 2
  }
  return { answers, left: asked.slice(at) }
}
