import { ImpresarioError } from '@impresario/protocol'
import type { FileRef, TaskFiles } from '@impresario/protocol'
import type { Log, LogFields } from '../ports/runtime.ts'
import type { TurnInput } from './blueprint.ts'

/*
 * What is opened only when a handler uses it. Most handlers have no files and write no log, and thousands run in a second.
 */

/** The files of a job. */
export class LateFiles implements TaskFiles {
  readonly #input: TurnInput

  constructor(input: TurnInput) {
    this.#input = input
  }

  async download(name: string): Promise<string> {
    return this.#files().download(name)
  }

  async upload(path: string, name?: string): Promise<FileRef> {
    return this.#files().upload(path, name)
  }

  async readJson(name: string): Promise<unknown> {
    return this.#files().readJson(name)
  }

  async writeJson(name: string, value: unknown): Promise<FileRef> {
    return this.#files().writeJson(name, value)
  }

  async list(prefix?: string): Promise<readonly FileRef[]> {
    return this.#files().list(prefix)
  }

  #files(): TaskFiles {
    const { files } = this.#input
    if (files !== undefined) return files
    throw new ImpresarioError('FILES_UNAVAILABLE', 'No store of files is configured.')
  }
}

/** The log of a job. Without one, lines go nowhere. */
export class LateLog implements Log {
  readonly #input: TurnInput

  constructor(input: TurnInput) {
    this.#input = input
  }

  debug(message: string, fields?: LogFields): void {
    this.#input.log?.debug(message, fields)
  }

  info(message: string, fields?: LogFields): void {
    this.#input.log?.info(message, fields)
  }

  warn(message: string, fields?: LogFields): void {
    this.#input.log?.warn(message, fields)
  }

  error(message: string, fields?: LogFields): void {
    this.#input.log?.error(message, fields)
  }
}
