export { createMemoryStorage, EmbeddedStorage } from './embedded-storage.ts'
export type { EmbeddedStorageOptions } from './embedded-storage.ts'
export type { Changes, ItemRow, Journal, JournalQuery, LeaseRow, Opened, RecordRow } from './journal.ts'
