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
  decompress(data: Uint8Array): Uint8Array
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

/** 240 kB and 80 ms of loading, which nobody pays who does not ask for zstd. */
function loadWasm(): Promise<WasmZstd> {
  wasm ??= import('@hpcc-js/wasm-zstd').then(({ Zstd }) => Zstd.load())
  return wasm
}

/** 44 µs for 4 kB, 0.2 ms for this: less than handing it to another thread and being called back. */
const SYNC_BYTES_MAX = 16_384
/**
 * The codec in WebAssembly does 88 MB/s here: 1.5 ms in which nobody else is served. Larger answers are left to gzip. Those who
 * do not take that get zstd for up to 12 ms, and beyond it the answer as it is.
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
 * For bodies that come piece by piece. `undefined`: this encoding cannot; the codec in WebAssembly keeps one state for
 * all, which two streams at a time would spoil.
 */
export function createCompressor(accepted: readonly Encoding[]): { encoding: Encoding; stream: Transform } | undefined {
  for (const encoding of accepted) {
    if (encoding === 'gzip') return { encoding, stream: zlib.createGzip(GZIP) }
    if (native !== undefined) return { encoding, stream: native.createZstdCompress() }
  }
  return undefined
}

/** What a body was before; rejects with `TooLarge` rather than unpack more than `bytesMax`. */
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
 * A frame that does not say how large it is gets twenty times its own length from the codec, and fails beyond that. The codec
 * works on the thread that serves everybody: five megabytes are 60 ms.
 */
const WASM_UNKNOWN_BYTES_MAX = 262_144

async function unpackByWasm(data: Buffer, bytesMax: number): Promise<Buffer> {
  const declared = zstdContentSize(data)
  if (declared === undefined) throw new Error('not a zstd frame')
  if (declared !== 'unknown' && declared > bytesMax) throw new TooLarge()
  if (declared === 'unknown' && data.length > WASM_UNKNOWN_BYTES_MAX) throw new TooLarge()
  const codec = await loadWasm()
  const result = codec.decompress(data)
  if (result.length > bytesMax) throw new TooLarge()
  return Buffer.from(result)
}

const ZSTD_MAGIC = 0xfd_2f_b5_28

/** The size that the first frame says it has (RFC 8878, 3.1.1.1). The codec unpacks no more than that, whatever follows. */
export function zstdContentSize(data: Buffer): number | 'unknown' | undefined {
  if (data.length < 6 || data.readUInt32LE(0) !== ZSTD_MAGIC) return undefined
  const descriptor = data.readUInt8(4)
  const isSingle = (descriptor & 0b10_0000) !== 0
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 0b11] ?? 0
  const at = 5 + (isSingle ? 0 : 1) + dictionaryBytes
  const flag = descriptor >> 6
  const bytes = flag === 0 ? (isSingle ? 1 : 0) : 2 ** flag
  if (bytes === 0) return 'unknown'
  if (data.length < at + bytes) return undefined
  if (bytes === 8) return Number(data.readBigUInt64LE(at))
  return data.readUIntLE(at, bytes) + (bytes === 2 ? 256 : 0)
}

function called(call: (done: (error: Error | null, result: Buffer) => void) => void): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    call((error, result) => {
      if (error === null) resolve(result)
      else reject(error)
    })
  })
}
