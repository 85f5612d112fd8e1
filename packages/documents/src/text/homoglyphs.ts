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

/**
 * A word of one script, when it was typed with letters of two that look the same: `сoвет` with a Latin o is `совет`. The
 * script is that of the letters which only one of them has. Codes such as `А-113` become Latin, whichever letter was typed.
 */
export function foldLookalikes(word: string): string {
  if (!CYRILLIC.test(word)) return word
  if (DIGIT.test(word)) return Array.from(word).every(hasLatinForm) ? replaced(word, TO_LATIN) : mixedFolded(word)
  return mixedFolded(word)
}

function mixedFolded(word: string): string {
  if (!MIXED.test(word)) return word
  const letters = Array.from(word)
  const cyrillicOnly = letters.filter((letter) => CYRILLIC.test(letter) && !TO_LATIN.has(letter)).length
  const latinOnly = letters.filter((letter) => /[a-z]/.test(letter) && !TO_CYRILLIC.has(letter)).length
  return replaced(word, latinOnly > cyrillicOnly ? TO_LATIN : TO_CYRILLIC)
}

function hasLatinForm(letter: string): boolean {
  return !CYRILLIC.test(letter) || TO_LATIN.has(letter)
}

function replaced(word: string, letters: ReadonlyMap<string, string>): string {
  return Array.from(word, (letter) => letters.get(letter) ?? letter).join('')
}
