import { relative } from 'node:path'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

/**
 * Ends the output with one plain line, `N passed, N failed, N skipped`, for programs that read it. With `CI=true` a
 * skipped test fails the run, because it has proved nothing. A test that passed only at its second try is named with what
 * failed first: it is a defect, of the test or of the code.
 */
export class CountsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const passed = tests.filter((test) => test.result().state === 'passed').length
    const failed = tests.filter((test) => test.result().state === 'failed').length
    // A file that cannot be loaded, or an error outside of every test, is a failure as well.
    const broken = modules.filter((module) => module.errors().length > 0).length + unhandledErrors.length
    const skipped = tests.filter((test) => test.result().state === 'skipped')
    if (process.env['CI'] === 'true' && skipped.length > 0) {
      process.exitCode = 1
      for (const test of skipped) process.stdout.write(`skipped: ${test.module.moduleId}: ${test.fullName}\n`)
      process.stdout.write('A skipped test fails a run with CI=true. Install what it needs.\n')
    }
    for (const test of tests.filter((each) => each.diagnostic()?.flaky)) {
      const [first] = test.result().errors ?? []
      const where = `${test.project.name} ${relative(process.cwd(), test.module.moduleId)}`
      process.stdout.write(`unsteady: ${where}: ${test.fullName}\n${first?.stack ?? first?.message ?? ''}\n`)
    }
    process.stdout.write(`\n${passed} passed, ${failed + broken} failed, ${skipped.length} skipped\n`)
  }
}
