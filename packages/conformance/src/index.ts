export { describeStorage } from './describe-storage.ts'
export type { DescribeOptions } from './describe-storage.ts'
export type { StorageUnderTest } from './storage-under-test.ts'
