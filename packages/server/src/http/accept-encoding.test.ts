import { expect, test } from 'vitest'
import { acceptedEncodings } from './accept-encoding.ts'

test.each([
  [undefined, [], false],
  ['', [], false],
  ['gzip', ['gzip'], false],
  ['zstd', ['zstd'], false],
  ['gzip, zstd', ['zstd', 'gzip'], false],
  ['gzip, deflate, br, zstd', ['zstd', 'gzip'], false],
  ['GZIP ; q=0.5 , ZSTD;q=0.4', ['gzip', 'zstd'], false],
  ['zstd;q=0, gzip', ['gzip'], false],
  ['zstd;q=0.000, gzip;q=1.000', ['gzip'], false],
  ['*', ['zstd', 'gzip'], false],
  ['*;q=0', [], true],
  ['*;q=0.3, gzip;q=0.8', ['gzip', 'zstd'], false],
  ['identity', [], false],
  ['identity;q=0', [], true],
  ['identity;q=0, gzip', ['gzip'], true],
  ['*, identity;q=0', ['zstd', 'gzip'], true],
  ['identity;q=1, gzip;q=0.5', [], false],
  ['identity;q=0.5, gzip;q=0.5', ['gzip'], false],
  ['x-gzip', ['gzip'], false],
  ['br', [], false],
  ['gzip;q=2', [], false],
  ['gzip;q=', [], false],
  [',,,gzip,,', ['gzip'], false],
  ['x'.repeat(10_000), [], false],
])('[H-06] %j accepts %j', (header, encodings, refusesPlain) => {
  expect(acceptedEncodings(header)).toEqual({ encodings, refusesPlain })
  expect(acceptedEncodings(header)).toEqual({ encodings, refusesPlain })
})
