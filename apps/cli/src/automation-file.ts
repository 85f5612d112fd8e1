import { isDeepStrictEqual } from 'node:util'
import type { Automation, AutomationDefinition, Client } from '@impresario/client'
import { isImpresarioError, parseExact, stringifyExact } from '@impresario/client'
import { isNode, LineCounter, parseDocument, stringify } from 'yaml'
import type { Document, YAMLError } from 'yaml'
import { dataObject, withNumbers, YAML_RULES } from './arguments.ts'
import { readText, warn } from './automations.ts'
import { EXIT, Failure } from './failure.ts'
import { printJson } from './screen.ts'
import { withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'

/** A file of automations, with where each thing stands in it. */
interface AutomationFile {
  readonly name: string
  readonly definitions: readonly AutomationDefinition[]
  /** The line of what lies at this path, or of the nearest thing around it. */
  lineOf(path: readonly (string | number)[]): number
}

const ROOT = 'automations'

/** Reads a file without a server. Everything that is wrong with its shape is named, with its line. */
export function readAutomationFile(name: string, text: string): AutomationFile {
  const lines = new LineCounter()
  const document = parseDocument(text, { ...YAML_RULES, lineCounter: lines, prettyErrors: false })
  const lineOf = (path: readonly (string | number)[]): number => lineIn(document, lines, path)
  // A tag that is not known is only a warning there; its value would be taken for a text.
  const syntax = [...document.errors, ...document.warnings]
  refuse(
    name,
    syntax.map((one) => `${name}:${lines.linePos(one.pos[0]).line}: ${syntaxText(one)}`),
  )
  const root = withNumbers(contentOf(name, document))
  const entries = typeof root === 'object' && root !== null && ROOT in root ? root[ROOT] : undefined
  if (!Array.isArray(entries)) {
    refuse(name, [`${name}:1: There must be a list "${ROOT}:" with one entry for each automation.`])
  }
  const list = Array.isArray(entries) ? (entries as readonly unknown[]) : []
  refuse(name, shapeProblems(name, list, root, lineOf))
  return { name, definitions: list.map(asDefinition), lineOf }
}

/** The words of the parser, without advice for programmers. */
function syntaxText({ code, message }: YAMLError): string {
  return code === 'MULTIPLE_DOCS' ? 'A second document begins here. A file has one.' : message
}

function contentOf(name: string, document: Document): unknown {
  try {
    return document.toJS()
  } catch (error) {
    // An alias without its anchor, and aliases of aliases that would become very large.
    if (!(error instanceof ReferenceError)) throw error
    throw new Failure('INVALID_FILE', `${name} is not valid. Nothing was changed.\n${name}: ${error.message}.`)
  }
}

function shapeProblems(
  name: string,
  entries: readonly unknown[],
  root: unknown,
  lineOf: AutomationFile['lineOf'],
): readonly string[] {
  const problems: string[] = []
  const say = (path: readonly (string | number)[], message: string): void => {
    problems.push(`${name}:${lineOf(path)}: ${pathText(path)}${message}`)
  }
  for (const key of Object.keys(dataObject(root))) {
    if (key === ROOT || key.startsWith('x-')) continue
    say([key], `is not known. A file has "${ROOT}", and names that begin with "x-" for what anchors share.`)
  }
  const seen = new Map<string, number>()
  for (const [at, entry] of entries.entries()) {
    const path = [ROOT, at]
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
      say(path, 'must be an automation with "title" and "pipeline".')
      continue
    }
    const title = 'title' in entry ? entry.title : undefined
    if (typeof title !== 'string' || title === '') {
      const isGiven = title !== undefined && title !== null && title !== ''
      const missing = 'is missing. Without a "key" the title is the name by which the automation is found again.'
      say([...path, 'title'], isGiven ? 'must be a text. Put it in quotation marks.' : missing)
      continue
    }
    const key = keyOf(entry)
    const [field, known] = typeof key === 'string' ? ['key', `key ${key}`] : ['title', `title ${title}`]
    const other = seen.get(known)
    if (other !== undefined) say([...path, field], `is the same as that of ${ROOT}[${other}]. Each needs its own.`)
    seen.set(known, at)
  }
  return problems
}

function refuse(name: string, problems: readonly string[]): void {
  if (problems.length === 0) return
  throw new Failure('INVALID_FILE', `${name} is not valid. Nothing was changed.\n${problems.join('\n')}`)
}

/** Boundary: its shape was checked, and the server checks the rest. */
function asDefinition(entry: unknown): AutomationDefinition {
  return entry as AutomationDefinition
}

function pathText(path: readonly (string | number)[]): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('')
  return `${text.replace(/^\./, '')} `
}

function lineIn(document: Document, lines: LineCounter, path: readonly (string | number)[]): number {
  for (let length = path.length; length > 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true)
    if (isNode(node) && node.range !== undefined && node.range !== null) return lines.linePos(node.range[0]).line
  }
  return 1
}

type Change =
  | { readonly change: 'create'; readonly title: string; readonly definition: AutomationDefinition }
  | {
      readonly change: 'update'
      readonly title: string
      readonly id: string
      /** What was read: a change that is made meanwhile is not overwritten. */
      readonly revision: number
      readonly definition: AutomationDefinition
    }
  | { readonly change: 'unchanged' | 'delete'; readonly title: string; readonly id: string }

/** What has to be done so that the server has what the file says. Those that are canceled count as gone. */
export function changesFor(
  definitions: readonly AutomationDefinition[],
  existing: readonly Automation[],
  isPruning: boolean,
): readonly Change[] {
  const open = existing.filter(({ status }) => status !== 'canceled')
  const changes = definitions.map((definition): Change => {
    const { title } = definition
    const found = foundFor(definition, open)
    if (found === undefined) return { change: 'create', title, definition }
    const isSame = isDeepStrictEqual(plain(found.definition), plain(definition))
    const { id, revision } = found
    return isSame ? { change: 'unchanged', title, id } : { change: 'update', title, id, revision, definition }
  })
  const kept = new Set(changes.map((change) => ('id' in change ? change.id : '')))
  const surplus = isPruning ? open.filter(({ id }) => !kept.has(id)) : []
  return [...changes, ...surplus.map(({ title, id }) => ({ change: 'delete', title, id }) as const)]
}

/** By its key; one without a key, or that has none on the server yet, by its title. */
function foundFor({ key, title }: AutomationDefinition, open: readonly Automation[]): Automation | undefined {
  const sameKey = key === undefined ? [] : open.filter(({ definition }) => keyOf(definition) === key)
  const unkeyed = open.filter(({ definition }) => key === undefined || keyOf(definition) === undefined)
  const [found, second] = sameKey.length > 0 ? sameKey : unkeyed.filter((one) => one.title === title)
  if (second === undefined) return found
  const what = sameKey.length > 0 ? `with the key "${key ?? ''}"` : `"${title}"`
  throw new Failure('CONFLICT', `There are several automations ${what}. Change or delete all but one of them.`)
}

function keyOf(definition: object): unknown {
  return 'key' in definition ? definition.key : undefined
}

function plain(value: unknown): unknown {
  return parseExact(stringifyExact(value))
}

/** Asks the server about each, so that nothing is changed when anything is wrong. */
async function checkAll(client: Client, file: AutomationFile): Promise<readonly string[]> {
  const problems: string[] = []
  const warnings: string[] = []
  for (const [at, definition] of file.definitions.entries()) {
    try {
      const { warnings: found = [] } = await client.automations.preview(definition, 1)
      warnings.push(...found.map((text) => `${file.name}:${file.lineOf([ROOT, at])}: ${definition.title}: ${text}`))
    } catch (error) {
      if (!isImpresarioError(error) || error.status >= 500 || error.status === 401 || error.status === 403) throw error
      problems.push(...located(file, at, error.message))
    }
  }
  refuse(file.name, problems)
  return warnings
}

const FIELD = /(?:^|[.!?] )(?<field>[a-z_]+(?:\[\d+\]|\.[a-z_]+)*)(?: \(step "[^"]*"\))?: /g

/** One line of text for each problem that the server named, with its line in the file. */
function located(file: AutomationFile, at: number, message: string): readonly string[] {
  const found = [...message.matchAll(FIELD)]
  if (found.length === 0) return [`${file.name}:${file.lineOf([ROOT, at])}: ${message}`]
  return found.map((match, index) => {
    const field = match.groups?.['field'] ?? ''
    const text = message.slice(match.index, found[index + 1]?.index ?? message.length).replace(/^[.!?] /, '')
    const path = [...field.matchAll(/[a-z_]+|\d+/g)].map(([part]) => (/^\d/.test(part) ? Number(part) : part))
    return `${file.name}:${file.lineOf([ROOT, at, ...path])}: ${text.trim()}`
  })
}

export interface ApplyOptions extends GlobalOptions {
  readonly dryRun?: boolean
  readonly prune?: boolean
}

const MARKS = { create: '+', update: '~', delete: '-', unchanged: '=' } as const

/** Brings the server to what the file says. The same file once more changes nothing. */
export async function applyFile(name: string, options: ApplyOptions): Promise<number> {
  const file = readAutomationFile(name, await readText(name))
  return withServer(options, async ({ client, screen }) => {
    const warnings = await checkAll(client, file)
    const { clientId: owner } = await client.account()
    const existing = await client.automations.list({ owner, limit: 100 }).all()
    const changes = changesFor(file.definitions, existing, options.prune === true)
    const isDry = options.dryRun === true
    if (!isDry) for (const change of changes) await carryOut(client, change)
    const told = changes.map(({ change, title }) => ({ change, title }))
    const doubts = warnings.length === 0 ? {} : { warnings }
    if (screen.isJson) printJson(screen, { dry_run: isDry, changes: told, ...doubts })
    else {
      warn(screen, warnings)
      for (const { change, title } of told) screen.out(`${MARKS[change]} ${title}  ${screen.paint('dim', change)}`)
      const count = told.filter(({ change }) => change !== 'unchanged').length
      screen.out(count === 0 ? 'Nothing to change.' : `${count} ${isDry ? 'would change' : 'changed'}.`)
    }
    return EXIT.ok
  })
}

async function carryOut(client: Client, change: Change): Promise<void> {
  if (change.change === 'create') await client.automations.create(change.definition)
  if (change.change === 'update') {
    await client.automations.update(change.id, change.definition, { revision: change.revision })
  }
  if (change.change === 'delete') await client.automations.delete(change.id)
}

/** All automations of the caller as such a file, in the order of their titles. */
export function exportFile(options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { clientId: owner } = await client.account()
    const all = await client.automations.list({ owner, limit: 100 }).all()
    const open = all
      .filter(({ status }) => status !== 'canceled')
      .toSorted((a, b) => (a.title === b.title ? 0 : a.title < b.title ? -1 : 1))
    const names = open.flatMap(({ definition, title }) => (keyOf(definition) === undefined ? [title] : []))
    const shared = [...new Set(names.filter((title, at) => names.indexOf(title) !== at))]
    warn(
      screen,
      shared.map(
        (title) => `Several automations have the title "${title}" and no key: give each a key before you apply this.`,
      ),
    )
    const content = { [ROOT]: open.map(({ definition }) => plain(definition)) }
    if (screen.isJson) printJson(screen, content)
    else screen.out(stringify(content, { lineWidth: 120 }).trimEnd())
    return EXIT.ok
  })
}
