import { endOfString } from './json-scan.ts'

/** Where a position of a JSON text is, such as `initial_data.items[3].id`. The text before it must be JSON. */
export function pathAt(text: string, position: number): string {
  const steps: (string | number)[] = []
  for (let at = 0; at < position; at += 1) {
    const char = text.charAt(at)
    if (char === '[') steps.push(0)
    else if (char === '{') steps.push('')
    else if (char === ']' || char === '}') steps.pop()
    else if (char === ',') count(steps)
    else if (char === '"') {
      const end = endOfString(text, at)
      if (typeof steps.at(-1) === 'string' && end < position && isBeforeColon(text, end)) {
        steps[steps.length - 1] = keyOf(text.slice(at, end + 1))
      }
      at = end
    }
  }
  const path = steps.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('')
  return path === '' ? 'The body' : path.replace(/^\./, '')
}

function count(steps: (string | number)[]): void {
  const last = steps.at(-1)
  if (typeof last === 'number') steps[steps.length - 1] = last + 1
}

function isBeforeColon(text: string, end: number): boolean {
  return /^\s*:/.test(text.slice(end + 1, end + 32))
}

const KEY_CHARS_MAX = 100

function keyOf(quoted: string): string {
  try {
    return String(JSON.parse(quoted)).slice(0, KEY_CHARS_MAX)
  } catch {
    return '?'
  }
}

/**
 * A number that Python and others write although JSON does not allow it, with its path; `undefined` if there is none.
 */
export function notANumberIn(text: string): { readonly path: string; readonly word: string } | undefined {
  const word = /-?(?:NaN|Infinity)/y
  for (let at = 0; at < text.length; at += 1) {
    if (text.charCodeAt(at) === 0x22) {
      at = endOfString(text, at)
      continue
    }
    word.lastIndex = at
    const found = word.exec(text)?.[0]
    if (found !== undefined) return { path: pathAt(text, at), word: found }
  }
  return undefined
}
