import type { TestProject } from 'vitest/node'
import { startRedis } from './redis-server.ts'

/** One server for all tests of the project. */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  // Nothing that these tests are about survives a crash.
  const server = await startRedis(['--appendfsync', 'no'])
  provide('storage', { backend: 'redis', url: server.url })
  return () => server.remove()
}
