import { openEmbeddedStorage } from './open.ts'
import { item, putJob } from './records.fixture.ts'

/**
 * Commits in a loop, as fast as it can, and prints the number of each job once it is durable. Goes on
 * where an earlier run was killed.
 */
async function main(directory: string): Promise<void> {
  const storage = openEmbeddedStorage({ directory })
  const [last] = await storage.list('job', { limit: 1 })
  let number = last === undefined ? 0 : Number(last.id) + 1
  const write = async (): Promise<never> => {
    for (;;) {
      const id = String(number++).padStart(8, '0')
      await storage.commit({ put: [putJob(id, 1)], enqueue: [item(id)] })
      await storage.sync()
      process.stdout.write(`${id}\n`)
    }
  }
  await Promise.all([write(), write(), write(), write()])
}

await main(process.argv[2] ?? '')
