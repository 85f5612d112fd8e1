import type { Chance } from './chance.fixture.ts'

/** Values that have broken programs before. */
export const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  1e308,
  -1e308,
  5e-324,
  Number.MAX_SAFE_INTEGER + 2,
  '',
  ' ',
  '\u0000',
  '\uD800',
  'constructor',
  '__proto__',
  'toString',
  '../../etc/passwd',
  "'; DROP TABLE records; --",
  '<script>alert(1)</script>',
  '{{constructor.constructor("return process")()}}',
  'ﬀ\u202E\uFEFF',
  'a'.repeat(10_000),
  [],
  [[]],
  [null],
  {},
  { '': '' },
  { constructor: { prototype: { polluted: true } } },
  { toString: 'no function' },
  { length: -1 },
]

/** Texts of bodies that no honest client would send. */
export function noise(chance: Chance): string {
  const kinds: readonly (() => string)[] = [
    () => Array.from({ length: chance.below(200) }, () => String.fromCodePoint(chance.below(0xd7_ff))).join(''),
    () => '{"a":'.repeat(1 + chance.below(200)),
    () => '['.repeat(1 + chance.below(3_000)),
    () => `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`,
    () => `{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}`,
    () => `{"a":1,"a":2}`,
    () => `{"n":${'9'.repeat(400)}}`,
    () => `"${String.raw`\ud800`}"`,
    () => `{"a":${'1'.repeat(chance.below(20))}e${chance.below(100_000)}}`,
    () => JSON.stringify(chance.pick(ODD_VALUES)),
    () => `\uFEFF{}`,
    () => 'null',
    () => '{"a":1}}',
    () => `{"${'k'.repeat(5_000)}":1}`,
    () => JSON.stringify(Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`k${at}`, at]))),
  ]
  return chance.pick(kinds)()
}

/** Paths and queries that no honest client would send. */
export const ODD_TEXTS: readonly string[] = [
  '%',
  '%00',
  '%2e%2e%2f',
  '..',
  '%ff%fe',
  'a%2Fb',
  '__proto__',
  'constructor',
  'null',
  'NaN',
  '-1',
  '1e999',
  '9'.repeat(60),
  'x'.repeat(1_500),
  '%F0%9F%92%A9',
  ' ',
  '*',
  "'",
  ';',
  '{}',
]
