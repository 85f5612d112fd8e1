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

/** Beyond this size JSON is indexed as it stands: parsed, it would take several times its size. */
const JSON_CHARS_MAX = 2_000_000
const DEPTH_MAX = 200

/** Names and values, one pair a line. What cannot be parsed is still a text. */
export function readJsonText(text: string, sink: TextSink): void {
  let value: unknown
  try {
    value = text.length > JSON_CHARS_MAX ? undefined : JSON.parse(text)
  } catch {
    value = undefined
  }
  if (value === undefined) sink.add(text)
  else walk(value, '', sink, 0)
}

function walk(value: unknown, name: string, sink: TextSink, depth: number): void {
  if (sink.isFull || depth > DEPTH_MAX) return
  if (Array.isArray(value)) {
    for (const item of value) walk(item, name, sink, depth + 1)
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      if (depth === 0 && key === 'title' && typeof item === 'string') sink.suggestTitle(item)
      walk(item, key, sink, depth + 1)
    }
  } else if (value !== null) {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    sink.line(name === '' ? text : `${name}: ${text}`)
  }
}
