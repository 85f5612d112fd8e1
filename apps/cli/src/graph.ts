import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Blueprint } from '@impresario/core'
import { EXIT, Failure, usage } from './failure.ts'
import { printJson } from './screen.ts'
import { screenFor, withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'

interface GraphOptions extends GlobalOptions {
  readonly format?: 'dot' | 'svg'
  readonly output?: string
  readonly name?: string
}

/** Draws the blueprint in a file, without a server, or the one that the server has under that name. */
export async function drawGraph(source: string, options: GraphOptions): Promise<number> {
  const format = options.format ?? (options.output?.endsWith('.svg') === true ? 'svg' : 'dot')
  const isFile = /[/\\]|\.[cm]?[jt]s$/.test(source) || existsSync(source)
  const graph = isFile
    ? await drawFile(source, format, options.name)
    : await withServer(options, ({ client }) => client.graph(source, format))
  const screen = screenFor(options)
  const { output } = options
  if (output !== undefined) await writeFile(output, graph)
  if (screen.isJson) printJson(screen, { source, format, ...(output === undefined ? { graph } : { output }) })
  else if (output === undefined) process.stdout.write(graph)
  else screen.out(`${screen.paint('green', '✓')} Wrote the graph of ${source} to ${output}.`)
  return EXIT.ok
}

async function drawFile(path: string, format: 'dot' | 'svg', name: string | undefined): Promise<string> {
  if (!existsSync(path)) throw new Failure('NOT_FOUND', `There is no file "${path}".`)
  const { renderGraph } = await import('@impresario/graph')
  const found = await blueprintsIn(path)
  const names = found.map((blueprint) => blueprint.name).join(', ')
  if (found.length === 0) {
    throw new Failure('INVALID_BLUEPRINT', `"${path}" exports no blueprint.`, {
      hint: 'Create one with blueprint(name, shape, states) and export it.',
    })
  }
  if (name === undefined && found.length > 1) {
    throw usage(`"${path}" has several blueprints: ${names}.`, 'Choose one with --name.')
  }
  const chosen = found.find((blueprint) => name === undefined || blueprint.name === name)
  if (chosen === undefined) throw usage(`"${path}" has no blueprint "${name}". It has: ${names}.`)
  return renderGraph(chosen, { format })
}

/** Newer versions of Node read TypeScript by themselves. */
async function blueprintsIn(path: string): Promise<readonly Blueprint[]> {
  const { isBlueprint } = await import('@impresario/core')
  const file = pathToFileURL(resolve(path)).href
  const isNative = !/\.m?ts$/.test(path) || ('typescript' in process.features && Boolean(process.features.typescript))
  try {
    const exported: unknown = isNative ? await import(file) : await importTyped(file)
    return [...new Set(Object.values(exported as object).filter(isBlueprint))]
  } catch (error) {
    throw new Failure('INVALID_BLUEPRINT', `"${path}" cannot be loaded: ${String(error)}`, { cause: error })
  }
}

async function importTyped(file: string): Promise<unknown> {
  const { tsImport } = await import('tsx/esm/api').catch((cause: unknown) => {
    const message = `Node ${process.versions.node} does not read TypeScript, and the package tsx is not installed.`
    throw new Error(`${message} Use Node 22.18 or newer, install tsx, or draw the compiled .js file.`, { cause })
  })
  return tsImport(file, import.meta.url)
}
