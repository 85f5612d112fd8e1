import { ImpresarioError, isImpresarioError } from '@impresario/protocol'

/** One thing that is wrong with an automation: where, what, and how to mend it. */
export interface Problem {
  /** Such as `pipeline[2].with.url`. */
  readonly field: string
  /** The id of the step, when there is one. */
  readonly step: string | undefined
  readonly message: string
}

/** Characters of a field or a message in an answer: it names at most 50 problems, so it stays short. */
const TEXT_MAX = 500

/** Gathers what is wrong, so that an author sees all of it at once. */
export class Problems {
  readonly #found: Problem[] = []

  get list(): readonly Problem[] {
    return this.#found
  }

  add(field: string, message: string, step?: string): void {
    if (this.#found.length < 50) this.#found.push({ field, step, message })
  }

  /** Runs something that refuses by throwing, and keeps its refusal. */
  try<T>(field: string, step: string | undefined, run: () => T): T | undefined {
    try {
      return run()
    } catch (error) {
      if (!isImpresarioError(error)) throw error
      this.add(field, error.message, step)
      return undefined
    }
  }

  /** Refuses when anything was found. */
  throwIfAny(what: string): void {
    const [first, ...more] = this.#found
    if (first === undefined) return
    const lines = this.#found
      .slice(0, 10)
      .map(({ field, step, message }) =>
        step === undefined ? `${field}: ${message}` : `${field} (step "${step}"): ${message}`,
      )
    const rest = this.#found.length > 10 ? ` And ${this.#found.length - 10} more.` : ''
    throw new ImpresarioError('INPUT_REFUSED', `${what} is not valid. ${lines.join(' ')}${rest}`, {
      details: { field: first.field, problems: more.length + 1 },
      problems: this.#found.map(({ field, step, message }) => ({
        field: field.slice(0, TEXT_MAX),
        ...(step === undefined ? {} : { step: step.slice(0, TEXT_MAX) }),
        message: message.slice(0, TEXT_MAX),
      })),
    })
  }
}

/** A refusal of one field, for `Problems.try`. */
export function refused(field: string, message: string): ImpresarioError {
  return new ImpresarioError('INPUT_REFUSED', message, { details: { field } })
}
