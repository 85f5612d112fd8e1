import type { TextKey, Translate } from './translate.ts'

/** What the server says about a firing, and the text that says it here. Its names are those of the values. */
const SENTENCES: readonly (readonly [said: RegExp, key: TextKey])[] = [
  [/^In the calendar "(?<calendar>[^"]+)": (?<label>.+)\.$/s, 'firing.labelled'],
  [/^In the calendar "(?<calendar>[^"]+)"\.$/, 'firing.excluded'],
  [/^Outside of the calendar "(?<calendar>[^"]+)"\.$/, 'firing.outside'],
  [/^Left out by an EXDATE of the rule\.$/, 'firing.exdate'],
  [/^(?<time>\S+) does not exist on that day: the clock goes from (?<from>.+) to (?<to>.+)\.$/, 'firing.gap'],
  [/^(?<time>\S+) comes twice on that day; this is the first\.$/, 'firing.first'],
  [/^(?<time>\S+) comes twice on that day; this is the second\.$/, 'firing.second'],
]

/** Why a firing is left out or at another time, in the language of the page. What is not known here stays in English. */
export function firingWords(t: Translate, said: string): string {
  for (const [pattern, key] of SENTENCES) {
    const found = pattern.exec(said)
    if (found !== null) return t(key, { ...found.groups })
  }
  return said
}
