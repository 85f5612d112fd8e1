import { quoted, refusal } from '../refusal.ts'

/** A property of an iCalendar file: `DTSTART;TZID=Europe/Berlin:20260101T090000`. */
export interface Property {
  readonly line: number
  /** In capitals. */
  readonly name: string
  /** By name in capitals; if there are several values, the first. */
  readonly parameters: ReadonlyMap<string, string>
  readonly value: string
}

/** A part between BEGIN and END. */
export interface Component {
  readonly line: number
  readonly name: string
  readonly properties: readonly Property[]
  readonly components: readonly Component[]
  /** The first line in it that could not be read. */
  readonly fault: Error | undefined
}

/** A component that is still open. */
interface OpenComponent {
  readonly name: string
  readonly line: number
  readonly properties: Property[]
  readonly components: Component[]
  fault: Error | undefined
}

const LINES_MAX = 200_000
const LINE_LENGTH_MAX = 100_000
const DEPTH_MAX = 8

/**
 * Reads the lines of a file into its components. A line that cannot be read is a fault of the component that it stands
 * in: exporters often leave the second line of a description without its space.
 */
export function parseComponents(text: string): readonly Component[] {
  const roots: Component[] = []
  const open: OpenComponent[] = []
  for (const property of unfolded(text)) {
    const top = open.at(-1)
    if (property instanceof Error) {
      if (top === undefined) throw property
      top.fault ??= property
    } else if (property.name === 'BEGIN') {
      if (open.length >= DEPTH_MAX) throw wrong(property.line, `components are nested more than ${DEPTH_MAX} deep`)
      const name = property.value.trim().toUpperCase()
      const component = { line: property.line, name, properties: [], components: [], fault: undefined }
      ;(top?.components ?? roots).push(component)
      open.push(component)
    } else if (property.name === 'END') {
      const name = property.value.trim().toUpperCase()
      if (top?.name !== name) throw wrong(property.line, `END:${name} does not close ${top?.name ?? 'anything'}`)
      open.pop()
    } else if (top === undefined) {
      throw wrong(
        property.line,
        `${quoted(property.name)} stands outside of a calendar; it begins with BEGIN:VCALENDAR`,
      )
    } else top.properties.push(property)
  }
  const left = open.at(-1)
  if (left !== undefined) throw wrong(left.line, `${left.name} has no END`)
  return roots
}

/** Long lines are folded: one that begins with a space or a tab continues the one before. */
function unfolded(text: string): readonly (Property | Error)[] {
  const raw = text.replace(/^\u{FEFF}/u, '').split(/\r\n|\n|\r/)
  if (raw.length > LINES_MAX) throw refusal('ics', `The file has ${raw.length} lines. It may have ${LINES_MAX}.`)
  const properties: (Property | Error)[] = []
  let parts: string[] = []
  let length = 0
  let begin = 0
  const flush = (): void => {
    const line = parts.join('')
    // Old programs end a file with NUL or Control-Z.
    if (/[^\s\p{Cc}]/u.test(line)) properties.push(parseProperty(line, begin + 1))
    parts = []
    length = 0
  }
  for (const [index, line] of raw.entries()) {
    const isContinued = parts.length > 0 && (line.startsWith(' ') || line.startsWith('\t'))
    if (!isContinued) {
      flush()
      begin = index
    }
    length += line.length
    if (length > LINE_LENGTH_MAX) throw wrong(index + 1, `the line is longer than ${LINE_LENGTH_MAX} characters`)
    parts.push(isContinued ? line.slice(1) : line)
  }
  flush()
  return properties
}

function parseProperty(line: string, lineNo: number): Property | Error {
  const [, name] = /^([A-Za-z0-9-]{1,60})[;:]/.exec(line) ?? []
  if (name === undefined) return wrong(lineNo, `${quoted(line)} has no name with ":" behind it`)
  const parameters = new Map<string, string>()
  let position = name.length
  while (line[position] === ';') {
    const parameter = parameterAt(line, position + 1)
    if (parameter === undefined) return wrong(lineNo, `a parameter of ${name} is not written as NAME=value`)
    if (!parameters.has(parameter.name)) parameters.set(parameter.name, parameter.value)
    position = parameter.end
  }
  if (line[position] !== ':') return wrong(lineNo, `${name} has no value`)
  return { line: lineNo, name: name.toUpperCase(), parameters, value: line.slice(position + 1) }
}

/** `TZID=Europe/Berlin`, or with quotation marks around a value that has `:` or `;` in it. */
function parameterAt(line: string, from: number): { name: string; value: string; end: number } | undefined {
  const equals = line.indexOf('=', from)
  if (equals === -1) return undefined
  const name = line.slice(from, equals)
  if (!/^[A-Za-z0-9-]{1,60}$/.test(name)) return undefined
  let end = equals + 1
  if (line[end] === '"') {
    const close = line.indexOf('"', end + 1)
    if (close === -1) return undefined
    const value = line.slice(end + 1, close)
    end = endOfParameter(line, close + 1)
    return { name: name.toUpperCase(), value, end }
  }
  end = endOfParameter(line, end)
  return { name: name.toUpperCase(), value: line.slice(equals + 1, end), end }
}

function endOfParameter(line: string, from: number): number {
  let end = from
  while (end < line.length && line[end] !== ';' && line[end] !== ':') end += 1
  return end
}

/** Text values write line breaks, commas and semicolons with a backslash. */
export function unescaped(value: string): string {
  return value.replaceAll(/\\([\\;,nN])/g, (_, character: string) => (/n/i.test(character) ? ' ' : character))
}

export function wrong(line: number, reason: string): Error {
  return refusal('ics', `Line ${line} of the calendar file is wrong: ${reason}.`)
}
