import { stemmer as russianStem } from '@orama/stemmers/russian'
import { foldedForm, termOf } from './stemming.ts'

/** Nouns that end like a verb in the past or like a participle: журнал, экран, профил(ь), кредит, режим, обмен. */
const LIKE_VERB = /[аеиоуыэюя].*(?:[ая][лн]|[иы][лмт]|ен|ят)$/
/** Their forms that end like other forms of verbs: журнала, экраны, автомобили, обмены. */
const LIKE_VERB_FORM = /[аеиоуыэюя].*(?:[ая][лн]|[иы]л|ен)[аоыи]$/
const RUSSIAN = /^[а-я]+$/
/** Shorter stems stand for too many words. */
const STEM_CHARS_MIN = 3

/**
 * Other terms under which forms of a Russian word are kept. The stemmer takes the end of some nouns for that of a verb, but not in
 * all of their cases: журнал becomes журна, and журналов журнал. Whoever asks for one wants the others as well.
 */
export function otherStems(word: string): readonly string[] {
  const folded = foldedForm(word)
  if (!RUSSIAN.test(folded)) return []
  const stem = termOf(word)
  const others = new Set<string>()
  if (LIKE_VERB.test(folded)) others.add(folded)
  if (LIKE_VERB_FORM.test(folded)) others.add(folded.slice(0, -1))
  if (LIKE_VERB.test(stem)) others.add(russianStem(stem))
  return [...others].filter((other) => other !== stem && other.length >= STEM_CHARS_MIN)
}
