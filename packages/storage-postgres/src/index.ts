export { openTransferableSchema } from './transferable-schema.ts'
export { openPostgresStorage } from './open.ts'
export type { PostgresStorageOptions } from './open.ts'
export type { PostgresStorage } from './postgres-storage.ts'
