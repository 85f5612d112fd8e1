import type { Reporter, SerializedError, TestModule } from 'vitest/node'

/** Ends the output with one plain line, `N passed, N failed`, for whoever reads it by machine. */
export class CountsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const passed = tests.filter((test) => test.result().state === 'passed').length
    const failed = tests.filter((test) => test.result().state === 'failed').length
    // A file that cannot be loaded, or an error outside of every test, is a failure as well.
    const broken = modules.filter((module) => module.errors().length > 0).length + unhandledErrors.length
    process.stdout.write(`\n${passed} passed, ${failed + broken} failed\n`)
  }
}
