import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { ImpresarioError, isJsonObject } from '@impresario/protocol'
import type { Json } from '@impresario/protocol'

/**
 * The fingerprints of tools as they were when they were seen first, in a file beside the configuration. A tool that says
 * something else later is not used until a person has removed its line.
 */
export class Pins {
  readonly #path: string
  readonly #known: Map<string, string>

  constructor(path: string) {
    this.#path = path
    this.#known = readPins(path)
  }

  /** Whether the tool is the one that was seen first. One that is new is kept as it is now. */
  accept(tool: string, fingerprint: string): boolean {
    const known = this.#known.get(tool)
    if (known !== undefined) return known === fingerprint
    this.#known.set(tool, fingerprint)
    this.#write()
    return true
  }

  #write(): void {
    const sorted = Object.fromEntries([...this.#known].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    const part = `${this.#path}.part`
    writeFileSync(part, `${JSON.stringify(sorted, null, 2)}\n`, { mode: 0o600 })
    renameSync(part, this.#path)
  }
}

function readPins(path: string): Map<string, string> {
  if (!existsSync(path)) return new Map()
  const value = parsed(path)
  if (!isJsonObject(value)) {
    throw new ImpresarioError(
      'INVALID_CONFIGURATION',
      `${path} does not hold fingerprints of tools. Restore it, or delete it.`,
    )
  }
  return new Map(
    Object.entries(value).flatMap(([tool, pin]) => (typeof pin === 'string' ? [[tool, pin] as const] : [])),
  )
}

function parsed(path: string): Json {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Json
  } catch {
    return null
  }
}
