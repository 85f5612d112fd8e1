import { stemmer as englishStem } from '@orama/stemmers/english'
import { stemmer as russianStem } from '@orama/stemmers/russian'
import { foldLookalikes } from './homoglyphs.ts'

/** Words of a language follow Zipf: so many cover more than nine tenths of any text. */
const CACHE_MAX = 20_000
const cache = new Map<string, string>()

const ASCII_WORD = /^[a-z]+$/
const RUSSIAN_WORD = /^[а-яё]+$/
const HAS_DIGIT = /\p{N}/u
const MARKS = /[\p{M}\u00AD]/gu
const LATIN = /\p{Script=Latin}/u

/**
 * The form under which a word is found: lower case, one script, without accents, ё as е, and without its ending. The
 * language is told by the letters, so that one document may have both. Numbers and codes keep every character.
 */
export function termOf(word: string): string {
  const known = cache.get(word)
  if (known !== undefined) return known
  const term = computed(word)
  if (cache.size >= CACHE_MAX) cache.clear()
  cache.set(word, term)
  return term
}

function computed(word: string): string {
  const folded = foldedForm(word)
  if (HAS_DIGIT.test(folded)) return folded
  if (ASCII_WORD.test(folded)) return englishStem(folded) || folded
  if (RUSSIAN_WORD.test(folded)) return russianStem(folded) || folded
  return folded
}

/** Everything but the stemming; a prefix that a user types is compared in this form. */
export function foldedForm(word: string): string {
  const lower = word.toLowerCase()
  if (ASCII_WORD.test(lower)) return lower
  // Composed first: й must not lose its breve, while accents on vowels, which Russian has no composed letters for, go.
  const composed = (LATIN.test(lower) ? lower.normalize('NFKD') : lower.normalize('NFKC')).replaceAll(MARKS, '')
  return foldLookalikes(composed.toLowerCase()).replaceAll('ё', 'е')
}
