import { isObject } from '../pipeline/reader.ts'

/**
 * Secrets in a run are only names. A template that reads `secrets.API_KEY` gets a mark, which is stored, shown and logged in
 * place of the value. The value is put in when the tool is called, and nowhere before.
 *
 * The mark is made of noncharacters. They are taken out of what comes from outside, so that only a pipeline makes marks.
 */
const OPEN = '\uFDD1'
const CLOSE = '\uFDD2'
const MARK = /\uFDD1([A-Za-z_]\w*)\uFDD2/g

/** What `secrets` is in templates: every name gives its mark. */
export function secretMarks(names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, `${OPEN}${name}${CLOSE}`]))
}

/** The secrets that a pipeline reads, as `secrets.NAME` in its templates. */
export function secretNamesIn(pipeline: unknown): readonly string[] {
  const text = JSON.stringify(pipeline)
  if (!text.includes('secrets')) return []
  return [...new Set([...text.matchAll(/\bsecrets\.([A-Za-z_]\w*)/g)].flatMap(([, name]) => name ?? []))]
}

/** Names of the marks in an input. */
export function marksIn(value: unknown): readonly string[] {
  const names = new Set<string>()
  mapTexts(value, (text) => {
    for (const [, name] of text.matchAll(MARK)) if (name !== undefined) names.add(name)
    return text
  })
  return [...names]
}

/** What comes from outside, without anything that reads like a mark. */
export function unmarked<T>(value: T): T {
  return mapTexts(value, (text) => text.replaceAll(/[\uFDD1\uFDD2]/g, ''))
}

/** Puts the values of secrets into an input, just before a tool is called. `valueOf` throws when there is no such secret. */
export function withSecrets<T>(value: T, valueOf: (name: string) => string): T {
  return mapTexts(value, (text) => text.replaceAll(MARK, (_mark, name: string) => valueOf(name)))
}

/** What people see instead of a mark. */
export function withoutMarks<T>(value: T): T {
  return mapTexts(value, (text) => text.replaceAll(MARK, (_mark, name: string) => `[secret ${name}]`))
}

/** Takes the values of secrets out of what a tool answered. Values shorter than six characters are left: they would hit words. */
export function redacted<T>(value: T, secrets: Readonly<Record<string, string>>): T {
  const known = Object.entries(secrets).filter(([, secret]) => secret.length >= 6)
  if (known.length === 0) return value
  return mapTexts(value, (text) => {
    let shown = text
    for (const [name, secret] of known) {
      for (const form of [secret, encodeURIComponent(secret)]) shown = shown.replaceAll(form, () => `[secret ${name}]`)
    }
    return shown
  })
}

/** Boundary: a value of the same shape, with other texts. Keys are texts too. */
function mapTexts<T>(value: T, change: (text: string) => string): T {
  const mapped = (each: unknown): unknown => {
    if (typeof each === 'string') return change(each)
    if (Array.isArray(each)) return each.map(mapped)
    if (!isObject(each) || Object.getPrototypeOf(each) !== Object.prototype) return each
    return Object.fromEntries(Object.entries(each).map(([key, inner]) => [change(key), mapped(inner)]))
  }
  return mapped(value) as T
}
