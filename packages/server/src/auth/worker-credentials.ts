import { sameSecret } from '../runtime/secret.ts'
import type { TokenHash } from '../runtime/secret.ts'

/** One table of the file of workers. */
export interface WorkerCredential {
  /** The table's name: a worker id, or a pattern with `*`. */
  readonly name: string
  /** Any of them is right: while a token is changed, the old and the new one. */
  readonly tokens: readonly TokenHash[]
  /** The tokens themselves, where this worker signs its messages: a signature cannot be checked with a hash. */
  readonly signing: readonly string[] | undefined
}

/**
 * Who may be which worker. A worker with a table of its own must use a token of that table; one that fits a pattern, a
 * token of the pattern; all others, the global one. There is no fallback to the next: a mismatch is final.
 */
export class WorkerCredentials {
  readonly global: TokenHash | undefined
  readonly #individual = new Map<string, WorkerCredential>()
  readonly #patterns: { readonly pattern: RegExp; readonly credential: WorkerCredential }[] = []
  readonly #byToken = new Map<string, WorkerCredential | 'global'>()

  constructor(tables: readonly WorkerCredential[], global: TokenHash | undefined) {
    this.global = global
    if (global !== undefined) this.#byToken.set(keyOf(global), 'global')
    for (const credential of tables) {
      for (const token of credential.tokens) this.#byToken.set(keyOf(token), credential)
      if (!isPattern(credential.name)) this.#individual.set(credential.name, credential)
      else this.#patterns.push({ pattern: patternOf(credential.name), credential })
    }
    // The longest pattern says most about an id; of two that are as long, the first by name, so that the order of the
    // file means nothing.
    this.#patterns.sort(
      (a, b) => b.credential.name.length - a.credential.name.length || (a.credential.name < b.credential.name ? -1 : 1),
    )
  }

  get isEmpty(): boolean {
    return this.#byToken.size === 0
  }

  /** Tokens that open the door for more than one id. */
  get shared(): readonly TokenHash[] {
    const global = this.global === undefined ? [] : [this.global]
    return [...global, ...this.#patterns.flatMap(({ credential }) => credential.tokens)]
  }

  /** Tables of the file. */
  get size(): number {
    return this.#individual.size + this.#patterns.length
  }

  /** The table that is meant for this id. */
  tableOf(workerId: string): WorkerCredential | undefined {
    return this.#individual.get(workerId) ?? this.#patterns.find(({ pattern }) => pattern.test(workerId))?.credential
  }

  /** What opens the door for this id. */
  tokensOf(workerId: string): readonly TokenHash[] {
    const table = this.tableOf(workerId)
    if (table !== undefined) return table.tokens
    return this.global === undefined ? [] : [this.global]
  }

  accepts(workerId: string, token: TokenHash): boolean {
    return this.tokensOf(workerId).some((known) => sameSecret(known, token))
  }

  /** Whether the token is known. */
  knows(token: TokenHash): boolean {
    return this.#byToken.has(keyOf(token))
  }

  /** The worker whose own token this is; not for tokens that several workers share. */
  ownerOf(token: TokenHash): string | undefined {
    const found = this.#byToken.get(keyOf(token))
    return found === undefined || found === 'global' || isPattern(found.name) ? undefined : found.name
  }

  /** Tokens that have let this worker in until now and no longer do. */
  hasLost(workerId: string, before: WorkerCredentials): boolean {
    return before.tokensOf(workerId).some((token) => !this.accepts(workerId, token))
  }
}

const PATTERN_PREFIX = 'pattern:'

function isPattern(name: string): boolean {
  return name.startsWith(PATTERN_PREFIX) || name.includes('*')
}

/** `*` stands for any characters, `?` is itself: ids hold none. */
function patternOf(name: string): RegExp {
  const text = name.startsWith(PATTERN_PREFIX) ? name.slice(PATTERN_PREFIX.length) : name
  const parts = text.split(/\*+/).map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`))
  return new RegExp(`^${parts.join('.*')}$`, 's')
}

/** A look-up by hash tells at most the hash of a guess, and that the guesser has already. */
function keyOf(hash: TokenHash): string {
  return hash.toString('latin1')
}
