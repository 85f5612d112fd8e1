import { Unpackr } from 'msgpackr'
import { expect, test } from 'vitest'
import { MessageWriter } from './message-writer.ts'

const reader = new Unpackr({ useRecords: false, int64AsType: 'number' })

function written(value: unknown): Buffer {
  const writer = new MessageWriter()
  writer.value(value)
  return writer.take()
}

const WHOLE = [0, 1, 127, 128, 255, 256, 65_535, 65_536, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1]
const NEGATIVE = [-1, -32, -33, -128, -129, -(2 ** 31), -(2 ** 53) + 1]
const OTHERS = [-0, 0.5, -0.5, 1e300, 5e-324, Infinity, -Infinity, Number.NaN]
const LENGTHS = [0, 1, 31, 32, 63, 64, 65, 255, 256, 65_535, 65_536]

test.each([...WHOLE, ...NEGATIVE, ...OTHERS])('[G-02] the number %d is read as it was written', (number) => {
  expect(Object.is(reader.unpack(written(number)), number)).toBe(true)
})

test.each(LENGTHS)(
  '[G-02] texts of %d characters, lists and maps of so many entries are read as they were written',
  (length) => {
    const texts = ['x', 'ж', '€', '\u{1F3AD}', '\0'].map((one) => one.repeat(length))
    for (const text of texts) expect(reader.unpack(written(text))).toBe(text)
    // The only multi-byte character is the last one.
    expect(reader.unpack(written(`${'x'.repeat(length)}ж`))).toBe(`${'x'.repeat(length)}ж`)
    const list = Array.from({ length }, (_, index) => index)
    expect(reader.unpack(written(list))).toEqual(list)
    const map = Object.fromEntries(list.map((index) => [`k${index}`, index]))
    expect(reader.unpack(written(map))).toEqual(map)
  },
)

test('[G-02] values in each other are read as JSON would read them', () => {
  const value = { a: [null, true, false, { b: [[], {}] }], c: undefined, d: [undefined], ключ: { e: { f: undefined } } }
  expect(reader.unpack(written(value))).toEqual(JSON.parse(JSON.stringify(value)))
  // Properties without a value are not written, even where that changes the length of the head.
  const sparse = Object.fromEntries(
    Array.from({ length: 20 }, (_, index) => [`k${index}`, index < 3 ? index : undefined]),
  )
  expect(reader.unpack(written(sparse))).toEqual({ k0: 0, k1: 1, k2: 2 })
})

test('[G-02] a value is no longer than it has to be', () => {
  expect(written({ a: 1, b: 'x' })).toHaveLength(8)
  expect(written([0, 127, -1, 'é'])).toHaveLength(1 + 3 + 3)
})

test('[G-02] what cannot be written leaves no trace of itself', () => {
  const writer = new MessageWriter()
  writer.value('before')
  const { length } = writer
  for (const value of [1n, Symbol('s'), () => 1]) {
    expect(() => writer.value({ good: 1, bad: [value] })).toThrow(/cannot be stored/)
    writer.rewind(length)
  }
  writer.value('after')
  expect(writer.take()).toEqual(Buffer.concat([written('before'), written('after')]))
  expect(writer.take()).toHaveLength(0)
})

test('[G-02] it grows with what is written, and what was taken stays as it was', () => {
  const writer = new MessageWriter()
  const long = 'y'.repeat(3_000_000)
  writer.value([long, long])
  const taken = writer.take()
  writer.value('z'.repeat(100))
  expect(reader.unpack(taken)).toEqual([long, long])
  expect(reader.unpack(writer.take())).toBe('z'.repeat(100))
})

test.each([0, 1, 3, 94, 95, 96, 996, 997, 998, 1_000, 70_000])(
  '[G-02] an argument with a text of %d characters has its length before it',
  (length) => {
    const writer = new MessageWriter()
    const body = written('x'.repeat(length))
    writer.argument('x'.repeat(length))
    writer.argument(true)
    const target = Buffer.alloc(writer.length + 1)
    expect(writer.moveTo(target, 1)).toBe(target.length - 1)
    expect(writer).toHaveLength(0)
    const head = Buffer.from(`\0$${body.length}\r\n`)
    const rest = [Buffer.from('\r\n$1\r\n'), written(true), Buffer.from('\r\n')]
    expect(target).toEqual(Buffer.concat([head, body, ...rest]))
  },
)
