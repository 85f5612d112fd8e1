import { getHeapStatistics } from 'node:v8'
import type { EmbeddedStorageOptions } from './embedded-storage.ts'

const MB = 1_048_576
/** Of the heap, for what the storage keeps to be quick, and as much again for what it has not yet written. */
const SHARE = 1 / 8

/** By the memory that the process may use (`--max-old-space-size`): a small heap gets a small cache, and no heap a huge one. */
export function memoryBounds(
  heapBytes = getHeapStatistics().heap_size_limit,
): Required<Pick<EmbeddedStorageOptions, 'cacheBytesMax' | 'pendingBytesMax'>> {
  const bytes = Math.min(Math.max(heapBytes * SHARE, 8 * MB), 256 * MB)
  return { cacheBytesMax: bytes, pendingBytesMax: bytes }
}
