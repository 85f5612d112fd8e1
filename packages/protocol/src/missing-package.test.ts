import { expect, test } from 'vitest'
import { missingPackage } from './missing-package.ts'

const wanted = { purpose: 'Redis as storage', packages: ['ioredis', 'msgpackr'] }

function notFound(what: string): Error {
  return Object.assign(new Error(`Cannot find ${what} imported from /somewhere/connection.js`), {
    code: 'ERR_MODULE_NOT_FOUND',
  })
}

test('[M-06] a package that is not installed is named, with the command that installs it', () => {
  const refusal = missingPackage(notFound("package 'msgpackr'"), wanted)
  expect(refusal?.code).toBe('INVALID_CONFIGURATION')
  expect(refusal?.message).toBe(
    'Redis as storage needs the package msgpackr, which is not installed. Run "npm install ioredis msgpackr".',
  )
})

test('other errors are left as they are', () => {
  expect(missingPackage(notFound("module '/somewhere/missing-file.js'"), wanted)).toBeUndefined()
  expect(missingPackage(new Error("Cannot find package 'ioredis'"), wanted)).toBeUndefined()
  expect(missingPackage('ERR_MODULE_NOT_FOUND', wanted)).toBeUndefined()
})
