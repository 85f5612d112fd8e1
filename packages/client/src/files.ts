import type { FileTransport, WireDownload, WireUpload } from './file-transport.ts'
import type { FileGrant, JobFile, UploadedFile } from './views.ts'
import { fromWire } from './wire-case.ts'

export interface UploadOptions {
  /** In hexadecimal digits. The server refuses content with another checksum. */
  readonly sha256?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface DownloadOptions {
  /** Begins with this byte, to resume an interrupted download. */
  readonly from?: number | undefined
  /** Only if the file is still this one; otherwise all of it comes. */
  readonly etag?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** A file on its way. */
export type Download = WireDownload

/** The files of one job. Names are paths within the job, such as `in/report.pdf`. */
export class Files {
  readonly #transport: FileTransport
  readonly #jobId: string

  constructor(transport: FileTransport, jobId: string) {
    this.#transport = transport
    this.#jobId = jobId
  }

  /** All files whose names begin with this, in the order of their names. */
  async list(prefix?: string): Promise<readonly JobFile[]> {
    const found: JobFile[] = []
    let after: string | undefined
    do {
      const page = await this.#transport.list(this.#jobId, { prefix, after })
      found.push(...page.files.map((file) => fromWire(file)))
      after = page.next ?? undefined
    } while (after !== undefined)
    return found
  }

  /** Stores a file with the job. A file of the same name is replaced. A stream is sent in pieces, whatever its length. */
  async upload(name: string, body: WireUpload['body'], options: UploadOptions = {}): Promise<UploadedFile> {
    const { s3_uri: uri, ...written } = await this.#transport.write(this.#jobId, name, { ...options, body })
    return { name: written.name, uri, bytes: written.bytes, etag: written.etag, sha256: written.sha256 }
  }

  async download(name: string, { from = 0, etag, signal }: DownloadOptions = {}): Promise<Download> {
    return this.#transport.read(this.#jobId, name, { from, etag, signal })
  }

  async delete(name: string): Promise<void> {
    await this.#transport.delete(this.#jobId, name)
  }

  /** A link that reads the file without a token. Valid for a week if `expiresMs` is not given. */
  async link(name: string, options: { readonly expiresMs?: number } = {}): Promise<FileGrant> {
    const query = { filename: name, expires_in: secondsOf(options.expiresMs) }
    return fromWire(await this.#transport.link(this.#jobId, query))
  }

  /** An address that accepts the file by `PUT`, without a token. With `bytes` it can be an address of S3. */
  async uploadUrl(
    name: string,
    options: { readonly bytes?: number; readonly expiresMs?: number } = {},
  ): Promise<FileGrant> {
    const query = { filename: name, bytes: options.bytes, expires_in: secondsOf(options.expiresMs) }
    return fromWire(await this.#transport.grantUpload(this.#jobId, query))
  }
}

function secondsOf(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.ceil(ms / 1_000)
}
