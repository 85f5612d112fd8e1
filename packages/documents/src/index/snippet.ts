import { tokensOf } from '../text/tokens.ts'

export interface Snippet {
  readonly text: string
  /** Where the words that were asked for stand in it. */
  readonly highlights: readonly (readonly [start: number, end: number])[]
}

const SNIPPET_CHARS = 240
/** Words are looked for in the first part of long documents only, so that a search stays quick. */
const LOOK_CHARS_MAX = 400_000
/** Places that are compared; the first ones of a document are as good as any. */
const PLACES_MAX = 200

interface TermPosition {
  readonly term: string
  readonly start: number
  readonly end: number
}

/** The part of the text with the most of the words asked for, cut at words, as the document has it. */
export function snippetOf(text: string, terms: readonly string[]): Snippet {
  const places = placesOf(text, terms)
  if (places.length === 0) return cut(text, 0, [])
  return cut(text, bestStart(places), places)
}

function placesOf(text: string, terms: readonly string[]): readonly TermPosition[] {
  const exact = new Set(terms.filter((term) => !term.endsWith('*')))
  const prefixes = terms.filter((term) => term.endsWith('*')).map((term) => term.slice(0, -1))
  if (exact.size === 0 && prefixes.length === 0) return []
  const isAsked = (term: string): boolean => exact.has(term) || prefixes.some((prefix) => term.startsWith(prefix))
  const places: TermPosition[] = []
  for (const { term, start, end } of tokensOf(text.slice(0, LOOK_CHARS_MAX))) {
    if (!isAsked(term)) continue
    places.push({ term, start, end })
    if (places.length >= PLACES_MAX) break
  }
  return places
}

/** Where to begin, so that as many different words as possible fit, and then as many as possible. */
function bestStart(places: readonly TermPosition[]): number {
  let best = { start: 0, worth: -1 }
  let last = 0
  for (const [index, { start }] of places.entries()) {
    while (last < places.length && (places[last]?.end ?? 0) <= start + SNIPPET_CHARS * 0.8) last += 1
    const inside = places.slice(index, last)
    const worth = new Set(inside.map(({ term }) => term)).size * 100 + inside.length
    if (worth > best.worth) best = { start, worth }
  }
  return best.start
}

const SPACE = /\s/

function cut(text: string, around: number, places: readonly TermPosition[]): Snippet {
  let start = Math.max(0, around - Math.floor(SNIPPET_CHARS * 0.2))
  if (start > 0) {
    while (start < around && !SPACE.test(text[start] ?? ' ')) start += 1
  }
  let end = Math.min(text.length, start + SNIPPET_CHARS)
  if (end < text.length) {
    let shorter = end
    while (shorter > start + SNIPPET_CHARS / 2 && !SPACE.test(text[shorter] ?? ' ')) shorter -= 1
    if (shorter > start + SNIPPET_CHARS / 2) end = shorter
  }
  return assembled(text, start, end, places)
}

/** Line breaks and runs of spaces become one space; the highlights move along. */
function assembled(text: string, start: number, end: number, places: readonly TermPosition[]): Snippet {
  let out = start > 0 ? '… ' : ''
  const moved = new Map<number, number>()
  const edges = new Set(places.flatMap((place) => [place.start, place.end]))
  let wasSpace = true
  for (let at = start; at < end; at += 1) {
    if (edges.has(at)) moved.set(at, out.length)
    const char = text[at] ?? ''
    const isSpace = SPACE.test(char)
    if (!isSpace) out += char
    else if (!wasSpace) out += ' '
    wasSpace = isSpace
  }
  if (edges.has(end)) moved.set(end, out.length)
  const highlights = places.flatMap((place) => {
    const from = moved.get(place.start)
    const to = moved.get(place.end)
    return from === undefined || to === undefined ? [] : [[from, to] as const]
  })
  const trimmed = out.trimEnd()
  return { text: end < text.length ? `${trimmed} …` : trimmed, highlights }
}
