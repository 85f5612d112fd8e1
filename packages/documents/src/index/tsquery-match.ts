import type { Clause, Phrase, Query } from './query.ts'

/** The weights of a PostgreSQL tsvector stand for the fields. */
export const FIELD_WEIGHTS = { name: 'A', title: 'B', body: 'C', parts: 'D' } as const

/** What the query asks of the full text, as a PostgreSQL tsquery; empty if nothing. */
export function tsqueryMatch({ wanted, excluded }: Query): string {
  const positive = wanted.map((group) => joined(group.map(clauseText), ' | '))
  const negative = excluded.map((clause) => `!(${clauseText(clause)})`)
  return [...positive, ...negative].join(' & ')
}

function clauseText({ anyOf, field }: Clause): string {
  const weight = field === undefined ? '' : FIELD_WEIGHTS[field]
  return joined(
    anyOf.map((phrase) => phraseText(phrase, weight)),
    ' | ',
  )
}

function phraseText({ terms, isPrefix }: Phrase, weight: string): string {
  const marked = terms.map((term, index) => {
    const star = isPrefix && index === terms.length - 1 ? '*' : ''
    const mark = `${star}${weight}`
    return `${lexeme(term)}${mark === '' ? '' : `:${mark}`}`
  })
  return joined(marked, ' <-> ')
}

/** A term as a literal of tsquery and tsvector. */
export function lexeme(term: string): string {
  return `'${term.replaceAll('\\', String.raw`\\`).replaceAll("'", "''")}'`
}

function joined(texts: readonly string[], operator: string): string {
  return texts.length === 1 ? (texts[0] ?? '') : `(${texts.join(operator)})`
}
