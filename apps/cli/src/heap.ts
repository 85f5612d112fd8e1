import { setFlagsFromString } from 'node:v8'

/**
 * Lets the heap of a server grow by six tenths of what is in use, instead of up to four times. Measured over a
 * benchmark with 25 MB in use: 122 MB instead of 163 MB for the process, at the same throughput. A V8 that does not
 * know the flag says so and goes on.
 */
export function restrainHeap(): void {
  setFlagsFromString('--heap-growing-percent=60')
}
