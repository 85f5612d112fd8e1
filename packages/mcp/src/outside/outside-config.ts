import { createHash } from 'node:crypto'
import { ImpresarioError, isJsonObject } from '@impresario/protocol'
import type { Json, JsonObject } from '@impresario/protocol'

/** A server of others whose tools pipelines may use. */
type OutsideTarget =
  | {
      readonly kind: 'stdio'
      readonly command: string
      readonly args: readonly string[]
      readonly env: Readonly<Record<string, string>>
      readonly cwd: string | undefined
    }
  | { readonly kind: 'http'; readonly url: string; readonly headers: Readonly<Record<string, string>> }

export interface OutsideConfig {
  readonly name: string
  readonly target: OutsideTarget
  readonly timeoutSeconds: number
}

const SERVERS_MAX = 50
const NAME = /^[A-Za-z][\w-]{0,39}$/
const TIMEOUT_S = 60
const TIMEOUT_S_MAX = 3_600

/** Reads the file in the form that assistants use: `{"mcpServers": {"github": {"command": "…"}, "crm": {"url": "…"}}}`. */
export function readOutsideConfig(place: string, text: string): readonly OutsideConfig[] {
  const servers = serversIn(place, text)
  const names = Object.keys(servers)
  if (names.length > SERVERS_MAX) throw invalid(place, `It names ${names.length} servers; ${SERVERS_MAX} are allowed.`)
  return names.map((name) => {
    if (!NAME.test(name)) {
      throw invalid(place, `"${name.slice(0, 60)}" is not a name for a server. Use up to 40 letters, digits, - and _.`)
    }
    const given = servers[name]
    if (!isJsonObject(given)) throw invalid(place, `"${name}" must be an object with "command" or "url".`)
    return { name, target: targetOf(place, name, given), timeoutSeconds: timeoutOf(place, name, given) }
  })
}

function serversIn(place: string, text: string): JsonObject {
  let whole: Json
  try {
    whole = JSON.parse(text) as Json
  } catch {
    throw invalid(place, 'It is not JSON.')
  }
  const servers = isJsonObject(whole) ? whole['mcpServers'] : undefined
  if (isJsonObject(servers)) return servers
  throw invalid(place, 'It must be {"mcpServers": {"name": {…}}}.')
}

function targetOf(place: string, name: string, given: JsonObject): OutsideTarget {
  const { command, url, args = [], cwd } = given
  if (typeof url === 'string' && command === undefined) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      throw invalid(place, `"${name}.url" must be an address such as https://mcp.example.com/mcp.`)
    }
    return { kind: 'http', url, headers: textsIn(place, `${name}.headers`, given['headers']) }
  }
  if (typeof command !== 'string' || command === '' || url !== undefined) {
    throw invalid(place, `"${name}" needs either "command" or "url".`)
  }
  if (!Array.isArray(args) || !args.every((one) => typeof one === 'string')) {
    throw invalid(place, `"${name}.args" must be a list of texts.`)
  }
  if (cwd !== undefined && typeof cwd !== 'string') throw invalid(place, `"${name}.cwd" must be a path.`)
  return { kind: 'stdio', command, args, env: textsIn(place, `${name}.env`, given['env']), cwd }
}

function textsIn(place: string, field: string, given: Json | undefined): Readonly<Record<string, string>> {
  if (given === undefined) return {}
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(isJsonObject(given) ? given : { '': null })) {
    if (typeof value !== 'string') throw invalid(place, `"${field}" must be an object of texts.`)
    texts[name] = value
  }
  return texts
}

function timeoutOf(place: string, name: string, { timeout_seconds: given }: JsonObject): number {
  if (given === undefined) return TIMEOUT_S
  if (typeof given === 'number' && given >= 1 && given <= TIMEOUT_S_MAX) return given
  throw invalid(place, `"${name}.timeout_seconds" must be a number from 1 to ${TIMEOUT_S_MAX}.`)
}

function invalid(place: string, problem: string): ImpresarioError {
  return new ImpresarioError('INVALID_CONFIGURATION', `${place}: ${problem}`)
}

/** What a server says of a tool. Nothing of it is believed. */
export interface ToldTool {
  readonly name: string
  readonly description: string
  readonly input: JsonObject
  readonly output: JsonObject | undefined
}

/** Changes with everything that an assistant or the author of a pipeline has read of the tool. */
export function fingerprintOf({ name, description, input, output }: ToldTool): string {
  return createHash('sha256')
    .update(JSON.stringify(sorted({ name, description, input, output: output ?? null })))
    .digest('hex')
}

/** With its keys in order, so that the same schema has the same text. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]))
}
