import { missingPackage } from '@impresario/protocol'
import type * as postgres from '@impresario/storage-postgres'
import type * as redis from '@impresario/storage-redis'

/*
 * Storages whose drivers only their users install. They are read when a storage is opened, and a driver that is not there is a
 * sentence that says what to install.
 */

export function postgresStorage(): Promise<typeof postgres> {
  return driver(() => import('@impresario/storage-postgres'), { purpose: 'PostgreSQL as storage', packages: ['pg'] })
}

export function redisStorage(): Promise<typeof redis> {
  const needs = { purpose: 'Redis as storage', packages: ['ioredis', 'msgpackr'] }
  return driver(() => import('@impresario/storage-redis'), needs)
}

async function driver<Module>(
  load: () => Promise<Module>,
  needs: { readonly purpose: string; readonly packages: readonly string[] },
): Promise<Module> {
  try {
    return await load()
  } catch (error) {
    throw missingPackage(error, needs) ?? error
  }
}
