import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ImpresarioError } from '@impresario/protocol'
import type { Worker } from '../worker.ts'

type AddSkills = (worker: Worker) => unknown

/** What the modules of a directory export, in the order of their names. */
export async function modulesIn(directory: string): Promise<readonly AddSkills[]> {
  let names: string[]
  try {
    names = await readdir(directory)
  } catch (cause) {
    const message = `WORKER_SKILLS_DIR: the directory ${directory} cannot be read.`
    throw new ImpresarioError('INVALID_CONFIGURATION', message, { cause })
  }
  const files = names.filter((name) => /\.m?js$/.test(name)).toSorted()
  return Promise.all(
    files.map(async (name) => {
      const loaded: unknown = await import(pathToFileURL(join(directory, name)).href)
      const add = isModule(loaded) ? loaded.default : undefined
      if (isAddSkills(add)) return add
      const message = `WORKER_SKILLS_DIR: ${join(directory, name)} must export a function by default.`
      throw new ImpresarioError('INVALID_CONFIGURATION', message)
    }),
  )
}

function isModule(value: unknown): value is { readonly default?: unknown } {
  return typeof value === 'object' && value !== null
}

function isAddSkills(value: unknown): value is AddSkills {
  return typeof value === 'function'
}
