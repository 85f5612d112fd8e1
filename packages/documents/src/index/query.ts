import { ImpresarioError } from '@impresario/protocol/light'
import { foldedForm } from '../text/stemming.ts'
import { otherStems } from '../text/other-stems.ts'
import { termsOf, tokensOf } from '../text/tokens.ts'

/** Terms that follow each other. */
export interface Phrase {
  readonly terms: readonly string[]
  /** The last term is the beginning of one. */
  readonly isPrefix: boolean
}

/** A document fits if it has one of the phrases. */
export interface Clause {
  readonly anyOf: readonly Phrase[]
  /** Where they have to stand. */
  readonly field: 'name' | 'title' | undefined
}

/** What a query asks for, in no index's language. */
export interface Query {
  /** One of each group has to hold. */
  readonly wanted: readonly (readonly Clause[])[]
  /** None of these may. */
  readonly excluded: readonly Clause[]
  /** Terms to highlight; a prefix ends with `*`. */
  readonly terms: readonly string[]
  readonly kinds: readonly string[]
  readonly paths: readonly string[]
  readonly excludedKinds: readonly string[]
  readonly excludedPaths: readonly string[]
  /** It has characters, but none that could be looked for. */
  readonly isNothing: boolean
  /** Times of the last change, in milliseconds. */
  readonly from: number | undefined
  readonly to: number | undefined
}

/** Longer queries are no questions of people. */
const QUERY_CHARS_MAX = 2_000
const WORDS_MAX = 64
/** Of one phrase, where its words have several stems. */
const FORMS_MAX = 16

const PIECE = /(-?)(?:([a-zа-я]+):)?(?:"([^"]*)"?|(\S+))/giu

const FIELDS: Readonly<Record<string, 'name' | 'title' | 'type' | 'path' | 'date'>> = {
  name: 'name', имя: 'name', title: 'title', заголовок: 'title', type: 'type', тип: 'type', path: 'path', путь: 'path',
  date: 'date', дата: 'date',
} // prettier-ignore

interface Asked extends Clause {
  readonly isExcluded: boolean
  readonly isAlternative: boolean
}

/**
 * `words all of which must occur`, `"a phrase"`, `-excluded`, `begin*`, `one OR other`, `name:report`, `title:plan`, `type:pdf`,
 * `path:contracts/`, `-type:zip`, `-path:old/`, `date:2024`, `date:2024-01..2024-03`, `date:>2024-05-01`.
 */
export function parseQuery(text: string, now: Date = new Date()): Query {
  if (text.length > QUERY_CHARS_MAX) throw refused(`it is longer than ${QUERY_CHARS_MAX} characters.`)
  const clauses: Asked[] = []
  const filters = {
    kinds: [] as string[],
    paths: [] as string[],
    excludedKinds: [] as string[],
    excludedPaths: [] as string[],
    from: undefined as number | undefined,
    to: undefined as number | undefined,
  }
  let isAlternative = false
  for (const [all, minus = '', label, phrase, word] of text.matchAll(PIECE)) {
    if (all === 'OR' || all === 'ИЛИ' || all === '|') {
      isAlternative = clauses.length > 0
      continue
    }
    if (all === 'AND' || all === 'И') continue
    const field = label === undefined ? undefined : FIELDS[label.toLowerCase()]
    const value = phrase ?? word ?? ''
    const isExcluded = minus !== ''
    if (field === 'type') {
      const kinds = value.toLowerCase().split(',').filter(Boolean)
      ;(isExcluded ? filters.excludedKinds : filters.kinds).push(...kinds)
    } else if (field === 'path') (isExcluded ? filters.excludedPaths : filters.paths).push(value)
    else if (field === 'date') {
      if (isExcluded) throw refused('a date cannot be excluded: ask for those before or after it, as date:<2024.')
      Object.assign(filters, datesOf(value, now))
    } else {
      const spoken = field === undefined && label !== undefined ? `${label}:${value}` : value
      const clause = clauseOf(spoken, phrase !== undefined, field)
      if (clause !== undefined) clauses.push({ ...clause, isExcluded, isAlternative })
    }
    isAlternative = false
  }
  if (clauses.length > WORDS_MAX) throw refused(`it has more than ${WORDS_MAX} words.`)
  const { kinds, paths, excludedKinds, excludedPaths, from, to } = filters
  const isFiltered = [kinds, paths, excludedKinds, excludedPaths].some(({ length }) => length > 0)
  const isEmpty = clauses.length === 0 && !isFiltered && from === undefined && to === undefined
  return { ...joined(clauses), ...filters, isNothing: isEmpty && text.trim() !== '' }
}

/** Alternatives belong together, everything else must hold, what is excluded must not. */
function joined(clauses: readonly Asked[]): Pick<Query, 'wanted' | 'excluded' | 'terms'> {
  const wanted: Clause[][] = []
  for (const { isExcluded, isAlternative, ...clause } of clauses) {
    if (isExcluded) continue
    const last = wanted.at(-1)
    if (isAlternative && last !== undefined) last.push(clause)
    else wanted.push([clause])
  }
  const excluded = clauses.filter(({ isExcluded }) => isExcluded).map(({ anyOf, field }): Clause => ({ anyOf, field }))
  return { wanted, excluded, terms: [...new Set(wanted.flat().flatMap(highlighted))] }
}

/** The words as they were asked for: the last form of a prefix is the shortest, and the parts of a code are no words. */
function highlighted({ anyOf }: Clause): readonly string[] {
  const [first] = anyOf
  if (first?.isPrefix !== true) {
    return anyOf.flatMap(({ terms }) => (terms.length === first?.terms.length ? terms : []))
  }
  const terms = anyOf.at(-1)?.terms ?? []
  return [...terms.slice(0, -1), `${terms.at(-1) ?? ''}*`]
}

function clauseOf(value: string, isPhrase: boolean, field: Clause['field']): Clause | undefined {
  const isPrefix = !isPhrase && /[\p{L}\p{N}]\*$/u.test(value)
  if (isPrefix) return prefixClause(value.slice(0, -1), field)
  const tokens = [...tokensOf(value)]
  if (tokens.length === 0) return undefined
  const forms = formsOf(tokens.map(({ term, start, end }) => [term, ...otherStems(value.slice(start, end))]))
  const phrases = forms.map((terms) => ({ terms, isPrefix }))
  // A code may be written with spaces in the text.
  const { parts } = termsOf(value)
  const anyOf = parts === '' || tokens.length > 1 ? phrases : [...phrases, { terms: parts.split(' '), isPrefix }]
  return { anyOf, field }
}

/** Every way to take one term of each word; the usual one first, and no more than a few. */
function formsOf(words: readonly (readonly string[])[]): readonly (readonly string[])[] {
  let forms: readonly (readonly string[])[] = [[]]
  for (const terms of words) {
    const longer = forms.flatMap((form) => terms.map((term) => [...form, term]))
    forms = longer.length > FORMS_MAX ? forms.map((form) => [...form, terms[0] ?? '']) : longer
  }
  return forms
}

/** Terms in the index have no endings: the beginning of a word may be longer than its term. */
function prefixClause(value: string, field: Clause['field']): Clause | undefined {
  const tokens = [...tokensOf(value)]
  const last = tokens.at(-1)
  if (last === undefined) return undefined
  const before = tokens.slice(0, -1).map(({ term }) => term)
  const typed = foldedForm(value.slice(last.start, last.end))
  const endings = typed === last.term || !typed.startsWith(last.term) ? [typed] : [typed, last.term]
  return { anyOf: endings.map((ending) => ({ terms: [...before, ending], isPrefix: true })), field }
}

/** `2024`, `2024-05`, `2024-05-17`, each from its first moment to its last, or two of them with `..` between. */
function datesOf(value: string, now: Date): { readonly from: number | undefined; readonly to: number | undefined } {
  const [, sign = '', rest = ''] = /^(>=?|<=?)?(.*)$/.exec(value) ?? []
  if (sign.startsWith('>')) return { from: spanOf(rest, now)[sign === '>' ? 1 : 0], to: undefined }
  if (sign.startsWith('<')) return { from: undefined, to: spanOf(rest, now)[sign === '<' ? 0 : 1] }
  const [first = '', second] = rest.split('..')
  if (second === undefined) {
    const [from, to] = spanOf(first, now)
    return { from, to }
  }
  return {
    from: first === '' ? undefined : spanOf(first, now)[0],
    to: second === '' ? undefined : spanOf(second, now)[1],
  }
}

function spanOf(text: string, now: Date): readonly [from: number, to: number] {
  const named = text.toLowerCase()
  if (named === 'today' || named === 'сегодня') return dayOf(now, 0)
  if (named === 'yesterday' || named === 'вчера') return dayOf(now, -1)
  const [, year, month, day] = /^(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?$/.exec(text) ?? []
  if (year === undefined) {
    throw refused(`"${text}" is no date; dates look like 2024, 2024-05, 2024-05-17 or 2024-01..2024-03.`)
  }
  const y = Number(year)
  const m = Number(month ?? 1) - 1
  const d = Number(day ?? 1)
  const from = new Date(y, m, d)
  if (from.getMonth() !== m || from.getDate() !== d) throw refused(`there is no day ${text}.`)
  const to =
    month === undefined ? new Date(y + 1, 0, 1) : day === undefined ? new Date(y, m + 1, 1) : new Date(y, m, d + 1)
  return [from.getTime(), to.getTime()]
}

function dayOf(now: Date, shift: number): readonly [number, number] {
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() + shift)
  return [day.getTime(), new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1).getTime()]
}

function refused(reason: string): ImpresarioError {
  return new ImpresarioError('INPUT_REFUSED', `The query cannot be used: ${reason}`)
}
