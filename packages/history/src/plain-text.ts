import type { Json } from '@impresario/protocol'

/** Characters that PostgreSQL text cannot hold, as JSON escapes: U+0000 and lone surrogates. */
const SUSPECT = /\\u(?:0000|d[89a-f])/i
const ZERO = /\0/g
/** With the flag `u` only lone surrogates match. */
const HALF = /\p{Surrogate}/gu

/** JSON that PostgreSQL accepts. Characters that it cannot hold are replaced by others that show where they were. */
export function plainJson(value: Json): string {
  const text = JSON.stringify(value)
  return SUSPECT.test(text) ? JSON.stringify(plain(value)) : text
}

export function plainText(text: string): string {
  return text.replaceAll(ZERO, '\u2400').replaceAll(HALF, '\uFFFD')
}

function plain(value: Json): Json {
  if (typeof value === 'string') return plainText(value)
  if (Array.isArray(value)) return value.map((part: Json) => plain(part))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [plainText(key), plain(part)]))
}
