import type { Database } from './schema.ts'

interface Pending {
  readonly work: () => unknown
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

/** Searches and file events get their turn between two transactions. */
const SLICE_MS = 30

/** Writes that come together go into one transaction. One that fails is undone alone. */
export class WriteBatch {
  readonly #db: Database
  readonly #pending: Pending[] = []
  #timer: NodeJS.Immediate | undefined
  #isClosed = false

  constructor(db: Database) {
    this.#db = db
  }

  add<T>(work: () => T): Promise<T> {
    if (this.#isClosed) return Promise.reject(new Error('The index is closed.'))
    return new Promise<T>((resolve, reject) => {
      this.#pending.push({ work, resolve, reject })
      this.#timer ??= setImmediate(() => this.#flush())
    })
  }

  async close(): Promise<void> {
    while (this.#pending.length > 0) this.#flush()
    this.#isClosed = true
  }

  #flush(): void {
    if (this.#timer !== undefined) clearImmediate(this.#timer)
    this.#timer = undefined
    const began = performance.now()
    const answers: (() => void)[] = []
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      while (this.#pending.length > 0 && performance.now() - began < SLICE_MS) {
        const next = this.#pending.shift()
        if (next !== undefined) answers.push(this.#perform(next))
      }
      this.#db.exec('COMMIT')
    } catch (error) {
      // The disk is full, perhaps. Nothing of it has happened, and all are told.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      const all = this.#pending.splice(0)
      for (const { reject } of all) reject(error)
      this.#failed(answers, error)
      return
    }
    for (const answer of answers) answer()
    if (this.#pending.length > 0) this.#timer = setImmediate(() => this.#flush())
  }

  readonly #rejects = new WeakMap<() => void, (error: unknown) => void>()

  #failed(answers: readonly (() => void)[], error: unknown): void {
    for (const answer of answers) this.#rejects.get(answer)?.(error)
  }

  #perform({ work, resolve, reject }: Pending): () => void {
    this.#db.exec('SAVEPOINT one')
    let answer: () => void
    try {
      const value = work()
      answer = () => resolve(value as never)
    } catch (error) {
      this.#db.exec('ROLLBACK TO one')
      answer = () => reject(error)
    }
    this.#db.exec('RELEASE one')
    this.#rejects.set(answer, reject)
    return answer
  }
}
