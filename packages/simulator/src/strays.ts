import type { WorldReport } from './simulate.ts'

/** What is known of a world that could not run to its end. */
const UNKNOWN = { setup: 'unknown', steps: 0, simulatedMs: 0, jobs: 0, hash: 0, counts: {}, lines: [] } as const

/**
 * Turns an error that escapes from a world into a finding of that world: an error of the harness itself, or an
 * unhandled rejection in the harness or in the product. One bad seed must not hide the results of the others.
 */
export async function catchStrays(seed: number, run: () => Promise<WorldReport>): Promise<WorldReport> {
  const caught: unknown[] = []
  const onStray = (reason: unknown): void => {
    caught.push(reason)
  }
  process.on('unhandledRejection', onStray)
  try {
    const report = await run().catch((error: unknown) => ({ ...UNKNOWN, seed, findings: [findingOf('ended', error)] }))
    // Node reports an unhandled rejection once the microtask queue is empty.
    await new Promise((resolve) => setImmediate(resolve))
    return { ...report, findings: [...report.findings, ...caught.map((reason) => findingOf('stray', reason))] }
  } finally {
    process.off('unhandledRejection', onStray)
  }
}

const SAYS = {
  ended: 'the world ended with an error',
  stray: 'a promise was rejected and nobody awaited it',
} as const

function findingOf(kind: keyof typeof SAYS, reason: unknown): WorldReport['findings'][number] {
  const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)
  return { rule: 'escaped', problem: `${SAYS[kind]}: ${text}` }
}
