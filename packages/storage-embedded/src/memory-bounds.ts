import { getHeapStatistics } from 'node:v8'
import type { EmbeddedStorageOptions } from './embedded-storage.ts'

const MB = 1_048_576
/** Share of the heap for cached data. Changes that are not yet written may use the same amount again. */
const SHARE = 1 / 8

/**
 * Depends on the memory that the process may use (`--max-old-space-size`): a small heap gets a small cache, and no heap
 * gets a huge one.
 */
export function memoryBounds(
  heapBytes = getHeapStatistics().heap_size_limit,
): Required<Pick<EmbeddedStorageOptions, 'cacheBytesMax' | 'pendingBytesMax'>> {
  const bytes = Math.min(Math.max(heapBytes * SHARE, 8 * MB), 256 * MB)
  return { cacheBytesMax: bytes, pendingBytesMax: bytes }
}
