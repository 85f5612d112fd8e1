/** Cyrillic letters that look like a Latin one, in lower case, and the Latin letter. */
const LOOKALIKES: readonly (readonly [cyrillic: string, latin: string])[] = [
  ['а', 'a'],
  ['в', 'b'],
  ['с', 'c'],
  ['е', 'e'],
  ['н', 'h'],
  ['і', 'i'],
  ['ј', 'j'],
  ['к', 'k'],
  ['м', 'm'],
  ['о', 'o'],
  ['р', 'p'],
  ['ѕ', 's'],
  ['т', 't'],
  ['у', 'y'],
  ['х', 'x'],
]
const TO_LATIN = new Map(LOOKALIKES)
const TO_CYRILLIC = new Map(LOOKALIKES.map(([cyrillic, latin]) => [latin, cyrillic]))

const MIXED = /[a-z].*\p{Script=Cyrillic}|\p{Script=Cyrillic}.*[a-z]/u
const CYRILLIC = /\p{Script=Cyrillic}/u
const DIGIT = /\p{N}/u
/** A Cyrillic letter without a Latin twin. */
const CYRILLIC_ONLY = new RegExp(`(?![${[...TO_LATIN.keys()].join('')}])\\p{Script=Cyrillic}`, 'u')
const LATIN_ONLY = new RegExp(`(?![${[...TO_CYRILLIC.keys()].join('')}])[a-z]`)

/**
 * A word of one script, when it was typed with letters of two that look the same: `сoвет` with a Latin o is `совет`. The
 * script is that of the letters which only one of them has. Codes such as `А-113` become Latin, whichever letter was typed.
 */
export function foldLookalikes(word: string): string {
  if (!CYRILLIC.test(word)) return word
  if (DIGIT.test(word) && !CYRILLIC_ONLY.test(word)) return replaced(word, TO_LATIN)
  return mixedFolded(word)
}

function mixedFolded(word: string): string {
  if (!MIXED.test(word)) return word
  const isLatin = countOf(word, LATIN_ONLY) > countOf(word, CYRILLIC_ONLY)
  return replaced(word, isLatin ? TO_LATIN : TO_CYRILLIC)
}

function countOf(word: string, letter: RegExp): number {
  return word.match(new RegExp(letter, `g${letter.flags}`))?.length ?? 0
}

function replaced(word: string, letters: ReadonlyMap<string, string>): string {
  return Array.from(word, (letter) => letters.get(letter) ?? letter).join('')
}
