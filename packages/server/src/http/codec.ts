import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import type { Encoding } from './accept-encoding.ts'

/** The part of `node:zlib` that is there since Node 22.15. */
interface NativeZstd {
  zstdCompressSync(data: Buffer): Buffer
  zstdCompress(data: Buffer, done: (error: Error | null, result: Buffer) => void): void
  zstdDecompress(data: Buffer, options: Bound, done: (error: Error | null, result: Buffer) => void): void
  createZstdCompress(): Transform
}

/** The codec for older Nodes. It works on the thread that calls it. */
interface WasmZstd {
  compress(data: Uint8Array, level?: number): Uint8Array
  reset(): void
  decompressChunk(data: Uint8Array, bytesMax: number): Uint8Array
}

interface Bound {
  readonly maxOutputLength: number
}

/** Node's types are those of the oldest version that we run on. */
function nativeZstd(): NativeZstd | undefined {
  return 'zstdCompress' in zlib && 'createZstdCompress' in zlib ? (zlib as unknown as NativeZstd) : undefined
}

const native = nativeZstd()
let wasm: Promise<WasmZstd> | undefined

/** Loaded when it is first needed: it takes 240 kB and 80 ms. */
function loadWasm(): Promise<WasmZstd> {
  wasm ??= import('@hpcc-js/wasm-zstd').then(({ Zstd }) => Zstd.load())
  return wasm
}

/** 44 µs for 4 kB, 0.2 ms for this: less than handing it to another thread and being called back. */
const SYNC_BYTES_MAX = 16_384
/**
 * The codec in WebAssembly compresses 88 MB/s and blocks the event loop for 1.5 ms with this size. Larger responses are
 * compressed with gzip. If the client accepts only zstd, it blocks for up to 12 ms; beyond that the response is not compressed.
 */
const WASM_BYTES_MAX = 131_072
const WASM_ALONE_BYTES_MAX = 1_048_576
/** Level 6 makes JSON a tenth smaller and takes three times as long. */
const GZIP = { level: 1 } as const

/** The best of the encodings for a body of this size; `undefined`: send it as it is. */
export function chooseEncoding(accepted: readonly Encoding[], bytes: number): Encoding | undefined {
  const [first] = accepted
  if (first !== 'zstd' || native !== undefined || bytes <= WASM_BYTES_MAX) return first
  if (accepted.includes('gzip')) return 'gzip'
  return bytes <= WASM_ALONE_BYTES_MAX ? first : undefined
}

export function compress(encoding: Encoding, data: Buffer): Buffer | Promise<Buffer> {
  const isSmall = data.length <= SYNC_BYTES_MAX
  if (encoding === 'gzip') {
    return isSmall ? zlib.gzipSync(data, GZIP) : called((done) => zlib.gzip(data, GZIP, done))
  }
  if (native !== undefined) {
    return isSmall ? native.zstdCompressSync(data) : called((done) => native.zstdCompress(data, done))
  }
  return loadWasm().then((codec) => Buffer.from(codec.compress(data, 1)))
}

/**
 * For bodies that are sent in chunks. `undefined` if none of the encodings can do it: the codec in WebAssembly has one
 * state, which two streams at a time cannot share.
 */
export function createCompressor(accepted: readonly Encoding[]): { encoding: Encoding; stream: Transform } | undefined {
  for (const encoding of accepted) {
    if (encoding === 'gzip') return { encoding, stream: zlib.createGzip(GZIP) }
    if (native !== undefined) return { encoding, stream: native.createZstdCompress() }
  }
  return undefined
}

/** The decompressed body; rejects with `TooLarge` if it has more than `bytesMax`, without unpacking the rest. */
export async function decompress(encoding: Encoding, data: Buffer, bytesMax: number): Promise<Buffer> {
  const bound = { maxOutputLength: bytesMax }
  try {
    if (encoding === 'gzip') return await called((done) => zlib.gunzip(data, bound, done))
    if (native !== undefined) return await called((done) => native.zstdDecompress(data, bound, done))
  } catch (error) {
    if (error instanceof RangeError && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') throw new TooLarge()
    throw error
  }
  return unpackByWasm(data, bytesMax)
}

export class TooLarge extends Error {}

/**
 * The codec gets room for one byte more than is allowed, and stops when that is full. It returns no bytes for data that it
 * cannot read. It runs on the thread that serves all requests: 1 MB, the default limit of a body, takes 40 ms.
 */
async function unpackByWasm(data: Buffer, bytesMax: number): Promise<Buffer> {
  const codec = await loadWasm()
  codec.reset()
  const result = codec.decompressChunk(data, bytesMax + 1)
  if (result.length === 0) throw new Error('not a zstd frame')
  if (result.length > bytesMax) throw new TooLarge()
  return Buffer.from(result)
}

function called(call: (done: (error: Error | null, result: Buffer) => void) => void): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    call((error, result) => {
      if (error === null) resolve(result)
      else reject(error)
    })
  })
}
