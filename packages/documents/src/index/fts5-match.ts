import type { Clause, Phrase, Query } from './query.ts'

/** What the query asks of the full text, in the language of SQLite's FTS5; empty if nothing. */
export function fts5Match({ wanted, excluded }: Query): string {
  const positive = wanted.map((group) => alternatives(group.map(clauseText))).join(' AND ')
  const negative = fts5Excluded(excluded)
  if (positive === '' || negative === '') return positive
  return `(${positive}) NOT (${negative})`
}

/** What documents must not have. FTS5 has no query that only excludes. */
export function fts5Excluded(excluded: Query['excluded']): string {
  return excluded.map(clauseText).join(' OR ')
}

function clauseText({ anyOf, field }: Clause): string {
  const text = alternatives(anyOf.map(phraseText))
  return field === undefined ? text : `${field} : ${text}`
}

function phraseText({ terms, isPrefix }: Phrase): string {
  const text = `"${terms.join(' ').replaceAll('"', '""')}"`
  return isPrefix ? `${text} *` : text
}

function alternatives(texts: readonly string[]): string {
  return texts.length === 1 ? (texts[0] ?? '') : `(${texts.join(' OR ')})`
}
