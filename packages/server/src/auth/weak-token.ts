/** Secrets that stand in documents and examples, ours and those of older systems: everybody knows them. */
export const WELL_KNOWN: ReadonlySet<string> = new Set([
  'secure-orchestrator-token',
  'secure-worker-token',
  'your-secret-worker-token',
  'the-token-of-this-client',
  'changeme',
  'change-me',
  'secret',
  'token',
  'password',
])

/** Words that people make placeholders of. What is left of a token without them has to be hard to guess by itself. */
const WORDS: ReadonlySet<string> = new Set(
  (
    'abc access admin all and api app auth automation bar baz bearer change changeit changeme client clients ' +
    'correct default demo dev development embedded example fake first foo for from generate global hello here horse ' +
    'impresario insert job jobs key letmein local localhost long new one only orchestrator our own password ' +
    'placeholder please prod production put random read replace root sample secret secrets secure server service ' +
    'some staging strong super system test tester testing tests that the this todo token tokens two user value very ' +
    'with worker workers xxx your'
  ).split(' '),
)

/** So many characters that are no such words: 8 letters and digits take 90 years at 1,000 guesses a second. */
const HARD_CHARS_MIN = 8
/** 16 random digits have fewer different ones in one of 100,000 cases. */
const DIFFERENT_CHARS_MIN = 5

/** What makes a token easy to guess, as the rest of a sentence; nothing if it looks random. */
export function weaknessOf(token: string): string | undefined {
  const lower = token.toLowerCase()
  if (WELL_KNOWN.has(lower)) return 'is a well-known default that is easy to guess'
  if (new Set(lower).size < DIFFERENT_CHARS_MIN) return 'repeats a few characters, which is easy to guess'
  if (isRun(lower)) return 'is a sequence of characters, which is easy to guess'
  return hardChars(token) < HARD_CHARS_MIN ? 'is made of ordinary words, which are easy to guess' : undefined
}

/** Most characters follow the one before them in the alphabet or in the row of digits, up or down. */
function isRun(text: string): boolean {
  let steps = 0
  for (let index = 1; index < text.length; index += 1) {
    const step = text.charCodeAt(index) - text.charCodeAt(index - 1)
    if (Math.abs(step) <= 1) steps += 1
  }
  return steps * 4 > text.length * 3
}

/** Letters and digits outside of ordinary words. `SecretToken` counts as two words. */
function hardChars(token: string): number {
  const parts = token.replaceAll(/([a-z])([A-Z])/g, '$1 $2').match(/[a-z]+|\d+/gi) ?? []
  let count = 0
  for (const part of parts) if (!isWord(part.toLowerCase())) count += part.length
  return count
}

const KEYBOARD = 'qwertyuiopasdfghjklzxcvbnm qwertzuiop'

function isWord(part: string): boolean {
  if (/^\d+$/.test(part)) return part.length >= 3 && '01234567890123456789'.includes(part)
  return WORDS.has(part) || (part.length >= 4 && KEYBOARD.includes(part))
}
