import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')
/** Inside the repository, so that `vitest` is found from there. */
const PLACE = join(ROOT, 'node_modules', '.skipped-test')

const TESTS = `
  import { expect, test } from 'vitest'
  test('runs', () => expect(1).toBe(1))
  test.skipIf(true)('needs what is not there', () => expect(1).toBe(2))
`

const UNSTEADY = `
  import { expect, test } from 'vitest'
  let tries = 0
  test('passes when it is tried again', { retry: 1 }, () => {
    tries += 1
    expect(tries).toBe(2)
  })
`

afterAll(() => rmSync(PLACE, { recursive: true, force: true }))

function run(ci: string, tests = TESTS): { readonly status: number | null; readonly output: string } {
  mkdirSync(PLACE, { recursive: true })
  writeFileSync(join(PLACE, 'sample.test.mjs'), tests)
  const reporter = JSON.stringify(join(ROOT, 'test', 'counts-reporter.ts'))
  const config = `import { CountsReporter } from ${reporter}
    export default { test: { include: ['*.test.mjs'], reporters: [new CountsReporter()] } }`
  writeFileSync(join(PLACE, 'vitest.config.ts'), config)
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs')
  const env = { ...process.env, CI: ci }
  const { status, stdout } = spawnSync(process.execPath, [vitest, 'run', '--root', PLACE], { env, encoding: 'utf8' })
  return { status, output: stdout }
}

test('with CI=true a skipped test fails the run and is named; the closing line counts it', () => {
  const { status, output } = run('true')
  expect(output).toMatch(/skipped: .*needs what is not there/)
  expect(output.trim().split('\n').at(-1)).toBe('1 passed, 0 failed, 1 skipped')
  expect(status).toBe(1)
})

test('elsewhere it is only counted', () => {
  const { status, output } = run('')
  expect(output.trim().split('\n').at(-1)).toBe('1 passed, 0 failed, 1 skipped')
  expect(status).toBe(0)
})

test('a test that passed at its second try is named, with what failed first', () => {
  const { status, output } = run('true', UNSTEADY)
  expect(output).toMatch(/unsteady: .*sample\.test\.mjs: passes when it is tried again\n.*expected 1 to be 2/)
  expect(output.trim().split('\n').at(-1)).toBe('1 passed, 0 failed, 0 skipped')
  expect(status).toBe(0)
})
