import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { CountsReporter } from './test/counts-reporter.ts'
import { LongestFirst } from './test/longest-first.ts'
import { RETRY } from './test/second-try.ts'
import { backendProject } from './test/servers/backend-projects.ts'

// Workspace packages are read from their TypeScript sources; `test/workspace.test.ts` checks that they are.
// Not `module`: packages that have it mean bundlers, and Node cannot load what they offer under it.
const conditions = ['source', 'node', 'development|production']

export default defineConfig(({ mode }) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['source'] } },
  test: {
    reporters: ['default', new CountsReporter()],
    globalSetup: ['test/global-setup.ts'],
    // These have a condition `source` of their own, which leads to TypeScript that Node cannot read.
    server: { deps: { inline: [/@modelcontextprotocol\/client/, /eventsource/] } },
    // One for each core, and not one less: many tests wait for servers and disks most of the time.
    maxWorkers: Math.max(2, availableParallelism()),
    sequence: { sequencer: LongestFirst },
    retry: RETRY,
    // Waits end as soon as what they wait for has come. These only end what hangs: no test may fail because a machine is busy.
    expect: { poll: { timeout: 60_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['{packages,apps}/*/src/**/*.test.ts', '{examples,bench}/src/**/*.test.ts'],
          pool: 'threads',
          // No code of ours keeps state in a module, so that files can share a worker and its loaded modules.
          isolate: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'repo',
          include: ['test/*.test.ts'],
          pool: 'threads',
          testTimeout: 180_000,
          hookTimeout: 120_000,
        },
      },
      // Asked for with `--mode backends`, as `npm test` does: a single file is mostly wanted on one storage only.
      ...(mode === 'backends' ? (['embedded', 'redis', 'postgres'] as const).map(backendProject) : []),
      {
        // Real processes, killed at bad moments: one file at a time, after everything else, with time to spare.
        extends: true,
        test: {
          name: 'system',
          include: ['test/system/**/*.test.ts'],
          pool: 'forks',
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
          testTimeout: 180_000,
          hookTimeout: 60_000,
        },
      },
    ],
    coverage: {
      provider: 'v8',
      reporter: [['text', { skipFull: true }]],
      reportsDirectory: 'coverage',
      include: ['packages/core/src/**/*.ts'],
      // The port of storages is types and one number, which only storages use.
      exclude: ['**/*.{test,types,fixture}.ts', 'packages/core/src/ports/storage.ts'],
      // The rules decide what becomes of a job: every line and every branch of them is tested.
      thresholds: { 'packages/core/src/**/*.ts': { lines: 100, branches: 100 } },
    },
  },
}))
