/*
 * What V8 takes on a 64-bit machine, rounded up. An empty object has room for four properties from the start, so `{}` is
 * twenty times as heavy as its text; a text counts as if it had characters beyond Latin-1.
 */
const OBJECT_BYTES = 56
const LIST_BYTES = 32
const TEXT_BYTES = 24
const PROPERTY_BYTES = 24
const ELEMENT_BYTES = 8
const NUMBER_BYTES = 16

type PlainObject = Readonly<Record<string, unknown>>

/**
 * Approximate size of a JSON value in memory, in bytes. Limits on data in memory use this and not the length of the
 * text: a body of 1 MB that is a list of empty objects takes 22 MB.
 */
export function jsonWeight(value: unknown): number {
  if (typeof value === 'string') return TEXT_BYTES + 2 * value.length
  if (typeof value !== 'object' || value === null) return typeof value === 'number' ? NUMBER_BYTES : 0
  if (Array.isArray(value)) {
    let weight = LIST_BYTES + ELEMENT_BYTES * value.length
    for (const element of value) weight += jsonWeight(element)
    return weight
  }
  let weight = OBJECT_BYTES
  // Lists of keys or entries would be made for every job, several times. Data has no inherited properties.
  // oxlint-disable-next-line guard-for-in
  for (const key in value) {
    const part = (value as PlainObject)[key]
    weight += part === undefined ? ELEMENT_BYTES : PROPERTY_BYTES + 2 * key.length + jsonWeight(part)
  }
  return weight
}
