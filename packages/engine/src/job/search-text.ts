import type { Job } from '@impresario/core'
import { LIMITS, seenText } from '@impresario/protocol'
import type { Json } from '@impresario/protocol'
import { excerpt } from './excerpt.ts'

/** What a list of jobs is searched in. Short, and the names that people know a job by come first. */
export function searchText({ id, blueprint, state, error, metadata }: Job): string {
  if (error === undefined && metadata === undefined) return `${id} ${blueprint} ${state}`
  const parts = [id, blueprint, state]
  if (error !== undefined) parts.push(error.code)
  let roomChars = LIMITS.searchTextCharsMax
  if (metadata !== undefined) {
    for (const text of stringsIn(metadata)) {
      parts.push(text)
      roomChars -= text.length
      if (roomChars <= 0) break
    }
  }
  if (error !== undefined) parts.push(error.message)
  return excerpt(parts.join(' ').replaceAll(/\s+/g, ' '), LIMITS.searchTextCharsMax)
}

function* stringsIn(value: Json): Iterable<string> {
  if (typeof value === 'string') {
    const seen = seenText(value)
    // Numbers are not searched, however they are kept.
    if (typeof seen === 'string') yield seen
  } else if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) yield* stringsIn(part)
  }
}
