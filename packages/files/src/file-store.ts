import type { Readable } from 'node:stream'

/** What a store knows of a file without reading it. */
export interface StoredFile {
  readonly key: string
  readonly bytes: number
  /** Changes with the content. */
  readonly etag: string
  readonly modifiedAt: number
}

/** Bytes from `start` up to and including `end`; without an end, all that follow. A negative start counts from the end. */
export interface ByteRange {
  readonly start: number
  readonly end?: number
}

export interface FileContent {
  readonly file: StoredFile
  /** The first and the last byte of the body, as a range was asked for. */
  readonly range: { readonly start: number; readonly end: number } | undefined
  /** Has to be read to its end or destroyed: it holds one of the places of the store. */
  readonly body: Readable
}

export interface PutOptions {
  /** Exactly so many bytes must come. */
  readonly bytes?: number | undefined
  readonly bytesMax?: number | undefined
  /** In hexadecimal digits: what comes must have this checksum. */
  readonly sha256?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface WrittenFile extends StoredFile {
  /** Of the content, in hexadecimal digits. */
  readonly sha256: string
}

export interface FileListing {
  readonly files: readonly StoredFile[]
  /** There are more: pass it as `after`. */
  readonly next: string | undefined
}

export interface ListOptions {
  /** Only what sorts behind this key. */
  readonly after?: string | undefined
  readonly limit?: number
}

export type PresignOptions = { readonly expiresMs: number } & (
  | { readonly method: 'GET'; readonly attachment: string }
  | { readonly method: 'PUT'; readonly bytes: number }
)

/**
 * Where files are kept. Keys are paths with `/` (`fileNameProblem` in protocol says which). Files appear whole or not at all,
 * in constant memory whatever their size; a put that fails, is aborted or is killed leaves nothing that `get`, `head` or
 * `list` shows, and `sweep` removes what it has left.
 */
export interface FileStore {
  /** `s3` and the name of the bucket: the beginning of each file's address, `s3://<bucket>/`. */
  readonly bucket: string
  /** Whether the store can be used. Throws the reason if not. */
  check(): Promise<void>
  put(key: string, body: AsyncIterable<Uint8Array>, options?: PutOptions): Promise<WrittenFile>
  /** Nothing if there is no such file. */
  get(key: string, range?: ByteRange): Promise<FileContent | undefined>
  head(key: string): Promise<StoredFile | undefined>
  /** Files whose keys begin with the prefix, in the order of their keys' bytes. */
  list(prefix: string, options?: ListOptions): Promise<FileListing>
  /** The names of the folders right below `prefix`, which ends with `/`; in any order, and each once. */
  folders(prefix: string): AsyncIterable<string>
  /** Deleting what is not there is no mistake. */
  delete(keys: readonly string[]): Promise<void>
  /** An address by which the file can be read or written without this process. Nothing: this store has none for it. */
  presign(key: string, options: PresignOptions): Promise<string | undefined>
  /** Removes what uploads have left that ended without an end, and have not written for so long. Returns how many. */
  sweep(idleMs: number): Promise<number>
  close(): Promise<void>
}
