import type { TextSink } from '../text-sink.ts'

export function readPlain(text: string, sink: TextSink): void {
  sink.add(text)
}

/** Markdown stays as it was written; its title is the one of the front matter, or the first heading. */
export function readMarkdown(text: string, sink: TextSink): void {
  const front = /^---\r?\n([\s\S]{0,10000}?)\r?\n---\r?\n/.exec(text)?.[1] ?? ''
  sink.suggestTitle(/^title:\s*["']?(.+?)["']?\s*$/m.exec(front)?.[1])
  sink.suggestTitle(/^#\s+(.+?)\s*#*\s*$/m.exec(text.slice(0, 20_000))?.[1])
  sink.add(text)
}

const DELIMITERS = [',', ';', '\t', '|']

/** A table: its cells, parted by tabs, so that two of them never look like one number. */
export function readTable(text: string, sink: TextSink): void {
  const [firstLine = ''] = text.slice(0, 10_000).split('\n', 1)
  const counts = DELIMITERS.map((delimiter) => firstLine.split(delimiter).length)
  const delimiter = DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ','
  let isQuoted = false
  let from = 0
  for (let at = 0; at < text.length && !sink.isFull; at += 1) {
    const char = text[at]
    if (char === '"') isQuoted = !isQuoted
    else if (char === delimiter && !isQuoted) {
      sink.add(`${text.slice(from, at)}\t`)
      from = at + 1
    }
  }
  sink.add(text.slice(from))
}

/** A text, a number, a bracket, or a word such as `true`. */
const JSON_TOKEN = /"(?:[^"\\]|\\[^])*"|[{}[\]]|-?\d[\d.eE+-]*|[a-z]+/g
const NAMED_TOKEN = /\s*:/y

/**
 * Names and values, one pair a line. The text is not parsed, so that it may be of any size, several values in one file, or cut
 * off, and every digit of a number stays.
 */
export function readJsonText(text: string, sink: TextSink): void {
  if (!/^[\s\uFEFF]*[{["]/.test(text)) {
    sink.add(text)
    return
  }
  let depth = 0
  let name = ''
  for (const { 0: token, index } of text.matchAll(JSON_TOKEN)) {
    if (sink.isFull) return
    if (token === '{' || token === '[') depth += 1
    else if (token === '}' || token === ']') depth -= 1
    else {
      const value = token.startsWith('"') ? unquoted(token) : token
      NAMED_TOKEN.lastIndex = index + token.length
      if (token.startsWith('"') && NAMED_TOKEN.test(text)) name = value
      else if (value !== 'null') {
        if (depth === 1 && name === 'title') sink.suggestTitle(value)
        sink.line(name === '' ? value : `${name}: ${value}`)
      }
    }
  }
}

function unquoted(token: string): string {
  try {
    return String(JSON.parse(token))
  } catch {
    return token.slice(1, -1)
  }
}
