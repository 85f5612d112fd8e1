import type { TestProject } from 'vitest/node'
import { missingPostgres, startPostgres } from './postgres-server.ts'

/** One server for all tests of the project. */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  if (missingPostgres !== undefined) throw new Error(missingPostgres)
  const server = await startPostgres()
  provide('storage', { backend: 'postgres', url: server.url })
  return () => server.stop()
}
