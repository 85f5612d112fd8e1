export type { ClaimMarks } from './claim-marks.ts'
export { createMemoryStorage, EmbeddedStorage } from './embedded-storage.ts'
export type { EmbeddedStorageOptions } from './embedded-storage.ts'
export type {
  Changes,
  CountRow,
  ExpiringRow,
  ItemRow,
  Journal,
  JournalQuery,
  LeaseRow,
  Opened,
  OpenedItem,
  RecordRow,
  RecordUpdate,
} from './journal.ts'
export { openTransferableFile } from './transferable-file.ts'
export { openEmbeddedStorage } from './open.ts'
export type { FileStorage, OpenOptions } from './open.ts'
export { createVolatileJournal } from './volatile-journal.ts'
export type { VolatileJournal, VolatileJournalOptions } from './volatile-journal.ts'
