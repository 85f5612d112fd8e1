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

/** The names in pipelines that were looked through before: a run asks for them in each of its turns. */
const NAMES = new WeakMap<object, readonly string[]>()

/** The secrets that a pipeline reads, as `secrets.NAME` in its templates. */
export function secretNamesIn(pipeline: object): readonly string[] {
  const known = NAMES.get(pipeline)
  if (known !== undefined) return known
  const names = namesIn(pipeline)
  NAMES.set(pipeline, names)
  return names
}

function namesIn(pipeline: object): readonly string[] {
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

/**
 * Takes the values of secrets out of what a tool answered, in the forms in which tools give back what they were given. Values
 * shorter than six characters are left: they would hit words.
 */
export function redacted<T>(value: T, secrets: Readonly<Record<string, string>>): T {
  const known = Object.entries(secrets)
    .filter(([, secret]) => secret.length >= SECRET_CHARS_MIN)
    .flatMap(([name, secret]) => [...formsOf(secret)].map((form) => ({ form, shown: `[secret ${name}]` })))
    .toSorted((a, b) => b.form.length - a.form.length)
  if (known.length === 0) return value
  return mapTexts(value, (text) => {
    let rest = text
    for (const { form, shown } of known) rest = rest.replaceAll(form, () => shown)
    // A message that was cut off may end inside of a secret.
    for (const { form, shown } of known) {
      const length = cutOff(rest, form)
      if (length > 0) rest = `${rest.slice(0, -length)}${shown}`
    }
    return rest
  })
}

const SECRET_CHARS_MIN = 6

/** How many characters at the end of a text are the beginning of this form; fewer than six may be anything. */
function cutOff(text: string, form: string): number {
  for (let length = Math.min(form.length - 1, text.length); length >= SECRET_CHARS_MIN; length -= 1) {
    if (text.endsWith(form.slice(0, length))) return length
  }
  return 0
}

/** A secret as it is, in an address, as JSON inside of a text and of a text in a text, and in base64 with something before it. */
function formsOf(given: string): ReadonlySet<string> {
  const secret = given.replaceAll(/\p{Surrogate}/gu, '\uFFFD')
  const asJson = JSON.stringify(secret).slice(1, -1)
  const plain = [given, secret, asJson, JSON.stringify(asJson).slice(1, -1)]
  return new Set(
    [
      ...plain,
      ...plain.map((text) => ascii(text)),
      encodeURIComponent(secret),
      percent(secret, /[^\w*.-]/gu),
      percent(secret, /[^\w*. -]/gu).replaceAll(' ', '+'),
      percent(secret, IN_QUERY),
      percent(secret, IN_PATH),
      ...[0, 1, 2].flatMap((before) => inBase64(secret, before)),
    ].filter((form) => form.length >= SECRET_CHARS_MIN),
  )
}

/** What addresses do not show as it is, by the URL standard. */
const IN_QUERY = /[^!$%&()*+,\-./:;=?@\w[\\\]^`{|}~]/gu
const IN_PATH = /[^!$%&'()*+,\-./:;=@\w[\\\]|~]/gu

function percent(text: string, unsafe: RegExp): string {
  const hex = (byte: number): string => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  return text.replaceAll(unsafe, (letter) => Array.from(new TextEncoder().encode(letter), hex).join(''))
}

/** As programs write JSON that keep to ASCII. */
function ascii(text: string): string {
  return text.replaceAll(/[\u0080-\uFFFF]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
/** Fewer may be anything. */
const BASE64_CHARS_MIN = 8

/** What is sure of a secret in the base64 of a longer text, with so many bytes of another group before it. */
function inBase64(secret: string, before: number): readonly string[] {
  const bytes = [...[0, 0].slice(0, before), ...new TextEncoder().encode(secret)]
  // Digits at both ends may hold bits of neighbours too.
  const [from, to] = [Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6)]
  let sure = ''
  for (let at = from; at < to; at += 1) {
    const [byte, shift] = [Math.floor((at * 6) / 8), (at * 6) % 8]
    const pair = ((bytes[byte] ?? 0) << 8) | (bytes[byte + 1] ?? 0)
    sure += BASE64.charAt((pair >> (10 - shift)) & 63)
  }
  return sure.length < BASE64_CHARS_MIN ? [] : [sure, sure.replaceAll('+', '-').replaceAll('/', '_')]
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
