import { Readable } from 'node:stream'
import { ImpresarioError, LIMITS, mustBeFileName } from '@impresario/protocol'
import { resolveRange } from './byte-range.ts'
import { CheckedBody } from './checked-body.ts'
import type {
  ByteRange,
  FileContent,
  FileListing,
  FileStore,
  ListOptions,
  PresignOptions,
  PutOptions,
  StoredFile,
  WrittenFile,
} from './file-store.ts'
import { Gate } from './gate.ts'
import { PartUpload } from './multipart.ts'
import { loadPresigner } from './s3-client.ts'
import type { S3Connection } from './s3-client.ts'

const PAGE_DEFAULT = 1_000
const PARTS_MAX = 10_000
/** What S3 takes in one request. An address cannot take a file in parts. */
const REQUEST_BYTES_MAX = 5_368_709_120
/** Single deletes, because many stores do not read the request for several (aws-sdk-js-v3#6819). */
const DELETES_AT_ONCE = 8

/** Files in a bucket of an S3-compatible store. */
export class S3Store implements FileStore {
  readonly bucket: string
  readonly #connection: S3Connection
  readonly #gate: Gate
  readonly #buffers = new Gate(LIMITS.fileBuffersBytesMax, 'uploads')

  constructor(options: { readonly connection: S3Connection; readonly bucket: string; readonly gate: Gate }) {
    this.bucket = options.bucket
    this.#connection = options.connection
    this.#gate = options.gate
  }

  async check(): Promise<void> {
    const { module, client } = this.#connection
    await this.#run(async () => client.send(new module.HeadBucketCommand({ Bucket: this.bucket })))
  }

  async put(key: string, body: AsyncIterable<Uint8Array>, options: PutOptions = {}): Promise<WrittenFile> {
    mustBeFileName('key', key)
    return this.#run(async () => {
      const { bytes, bytesMax, signal } = options
      const partBytes = Math.max(LIMITS.filePartBytes, Math.ceil((bytes ?? bytesMax ?? 0) / PARTS_MAX))
      const needed = Math.min(partBytes, Math.max(bytes ?? partBytes, 1))
      const free = await this.#buffers.enter(needed < partBytes ? needed : 2 * partBytes, signal)
      try {
        const checked = new CheckedBody(body, options)
        const upload = new PartUpload(this.#connection, { Bucket: this.bucket, Key: key }, needed)
        const etag = await upload.send(checked.read())
        const { sha256 } = checked
        return { key, bytes: checked.bytes, etag: plainEtag(etag), modifiedAt: Date.now(), sha256 }
      } finally {
        free()
      }
    }, options.signal)
  }

  async get(key: string, range?: ByteRange): Promise<FileContent | undefined> {
    mustBeFileName('key', key)
    const { module, client } = this.#connection
    const leave = await this.#gate.enter()
    try {
      const order = { Bucket: this.bucket, Key: key, ...rangeHeader(range) }
      const answer = await client.send(new module.GetObjectCommand(order))
      const { Body: body, ContentRange } = answer
      if (!(body instanceof Readable)) throw new Error('The store answered without a body')
      body.once('close', leave)
      const bytes = Number(ContentRange?.split('/')[1] ?? answer.ContentLength ?? 0)
      const file = { ...describe(key, answer), bytes }
      return { file, range: range === undefined ? undefined : resolveRange(range, bytes), body }
    } catch (error) {
      leave()
      if (statusOf(error) === 404) return undefined
      if (statusOf(error) !== 416 || range === undefined) throw asRefusal(error)
    }
    return this.#getResolved(key, range)
  }

  async head(key: string): Promise<StoredFile | undefined> {
    mustBeFileName('key', key)
    const { module, client } = this.#connection
    return this.#run(async () => {
      try {
        return describe(key, await client.send(new module.HeadObjectCommand({ Bucket: this.bucket, Key: key })))
      } catch (error) {
        if (statusOf(error) === 404) return undefined
        throw error
      }
    })
  }

  async list(prefix: string, { after, limit = PAGE_DEFAULT }: ListOptions = {}): Promise<FileListing> {
    const { module, client } = this.#connection
    const order = {
      Bucket: this.bucket,
      Prefix: prefix,
      MaxKeys: limit,
      ...(after === undefined ? {} : { StartAfter: after }),
    }
    return this.#run(async () => {
      const { Contents = [], IsTruncated } = await client.send(new module.ListObjectsV2Command(order))
      const files = Contents.map((entry) => ({
        key: entry.Key ?? '',
        bytes: entry.Size ?? 0,
        etag: plainEtag(entry.ETag ?? ''),
        modifiedAt: entry.LastModified?.getTime() ?? 0,
      }))
      return { files, next: IsTruncated === true ? files.at(-1)?.key : undefined }
    })
  }

  async *folders(prefix: string): AsyncGenerator<string> {
    const { module, client } = this.#connection
    let ContinuationToken: string | undefined
    do {
      const order = { Bucket: this.bucket, Prefix: prefix, Delimiter: '/', ContinuationToken }
      const page = await this.#run(async () => client.send(new module.ListObjectsV2Command(order)))
      for (const { Prefix = '' } of page.CommonPrefixes ?? []) yield Prefix.slice(prefix.length, -1)
      ContinuationToken = page.IsTruncated === true ? page.NextContinuationToken : undefined
    } while (ContinuationToken !== undefined)
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (const key of keys) mustBeFileName('key', key)
    const left = keys.values()
    await Promise.all(Array.from({ length: DELETES_AT_ONCE }, async () => this.#deleteEach(left)))
  }

  async presign(key: string, options: PresignOptions): Promise<string | undefined> {
    mustBeFileName('key', key)
    if (options.method === 'PUT' && options.bytes > REQUEST_BYTES_MAX) return undefined
    const { module, client } = this.#connection
    const { getSignedUrl } = await loadPresigner()
    const place = { Bucket: this.bucket, Key: key }
    const expiresIn = Math.ceil(options.expiresMs / 1_000)
    if (options.method === 'PUT') {
      const command = new module.PutObjectCommand({ ...place, ContentLength: options.bytes })
      return getSignedUrl(client, command, { expiresIn, signableHeaders: new Set(['content-length', 'host']) })
    }
    const answer = { ResponseContentDisposition: options.attachment, ResponseContentType: 'application/octet-stream' }
    return getSignedUrl(client, new module.GetObjectCommand({ ...place, ...answer }), { expiresIn })
  }

  async sweep(idleMs: number): Promise<number> {
    const { module, client } = this.#connection
    let removed = 0
    let marks: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } = {}
    for (;;) {
      const order = { Bucket: this.bucket, ...marks }
      const page = await this.#run(async () => client.send(new module.ListMultipartUploadsCommand(order)))
      for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
        if (Date.now() - (Initiated?.getTime() ?? 0) < idleMs) continue
        const upload = { Bucket: this.bucket, Key, UploadId }
        await this.#run(async () => client.send(new module.AbortMultipartUploadCommand(upload)))
        removed += 1
      }
      if (page.IsTruncated !== true) return removed
      marks = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker }
    }
  }

  close(): Promise<void> {
    this.#connection.client.destroy()
    return Promise.resolve()
  }

  async #deleteEach(keys: Iterator<string>): Promise<void> {
    const { module, client } = this.#connection
    for (let next = keys.next(); next.done !== true; next = keys.next()) {
      const Key = next.value
      await this.#run(async () => client.send(new module.DeleteObjectCommand({ Bucket: this.bucket, Key })))
    }
  }

  /** The store refused the range. Not every store says how long the file is, and some do not know ranges from the end. */
  async #getResolved(key: string, range: ByteRange): Promise<FileContent | undefined> {
    const file = await this.head(key)
    if (file === undefined) return undefined
    const resolved = resolveRange(range, file.bytes)
    if (range.start === resolved.start && range.end === resolved.end) {
      throw new ImpresarioError('FILES_UNAVAILABLE', 'The store of files refused the range.')
    }
    return this.get(key, resolved)
  }

  async #run<T>(operation: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const leave = await this.#gate.enter(1, signal)
    try {
      return await operation()
    } catch (error) {
      throw asRefusal(error)
    } finally {
      leave()
    }
  }
}

function rangeHeader(range: ByteRange | undefined): { readonly Range?: string } {
  if (range === undefined) return {}
  return { Range: range.start < 0 ? `bytes=${range.start}` : `bytes=${range.start}-${range.end ?? ''}` }
}

interface Described {
  readonly ContentLength?: number | undefined
  readonly ETag?: string | undefined
  readonly LastModified?: Date | undefined
}

function describe(key: string, { ContentLength = 0, ETag = '', LastModified }: Described): StoredFile {
  return { key, bytes: ContentLength, etag: plainEtag(ETag), modifiedAt: LastModified?.getTime() ?? 0 }
}

function plainEtag(etag: string): string {
  return etag.replaceAll('"', '')
}

function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('$metadata' in error)) return undefined
  const { $metadata: metadata } = error
  const isRead = typeof metadata === 'object' && metadata !== null && 'httpStatusCode' in metadata
  return isRead && typeof metadata.httpStatusCode === 'number' ? metadata.httpStatusCode : undefined
}

const NETWORK_ERRORS = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPIPE',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** What a store answers may name hosts, buckets and keys: it stays in the cause. What is our own mistake stays as it is. */
function asRefusal(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const status = statusOf(error)
  const code = 'code' in error ? String(error.code) : error.name
  const isOfStore =
    status !== undefined ||
    NETWORK_ERRORS.has(code) ||
    ['TimeoutError', 'CredentialsProviderError'].includes(error.name)
  if (!isOfStore) return error
  const reason = status === undefined ? code : `status ${status}, ${error.name}`
  return new ImpresarioError('FILES_UNAVAILABLE', `The store of files cannot be used (${reason}).`, { cause: error })
}
