/**
 * A value that is there at once, or later. Most steps of a job wait for nothing, and a promise for each of them was a third of
 * what a busy engine allocates. Code on that way looks whether it has a promise before it awaits.
 */
export type Soon<T> = T | Promise<T>

/** Goes on at once with a value, and later with a promise. */
export function chain<A, B>(value: Soon<A>, next: (value: A) => Soon<B>): Soon<B> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** A promise in any case: what is thrown at once is its rejection. */
export async function promised<T>(work: () => Soon<T>): Promise<T> {
  return work()
}
