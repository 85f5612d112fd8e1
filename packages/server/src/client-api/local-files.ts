import { Readable } from 'node:stream'
import type { FileTransport, WireDownload, WireQuery, WireUpload } from '@impresario/client'
import type { FileContent, JobFiles } from '@impresario/files'
import type { FileGrantBody, FileListBody, FileUploadReply } from '@impresario/protocol'
import type { Caller, ClientRole } from '../http/access.ts'
import * as operations from './file-operations.ts'
import type { FileOperationParts } from './file-operations.ts'

export interface LocalFileParts extends FileOperationParts {
  /** Where the server is reached, for links; empty where there is none. */
  readonly base: () => string
}

/** Files for a client of this process. */
export class LocalFiles implements FileTransport {
  readonly #parts: LocalFileParts
  readonly #as: (needs: ClientRole) => Caller

  /** `as` gives the caller, or refuses it if its role is too low. */
  constructor(parts: LocalFileParts, as: (needs: ClientRole) => Caller) {
    this.#parts = parts
    this.#as = as
  }

  async list(id: string, query: WireQuery): Promise<FileListBody> {
    return operations.listFiles(this.#parts, this.#as('viewer'), id, given(query))
  }

  async write(id: string, name: string, { body, sha256, signal }: WireUpload): Promise<FileUploadReply> {
    const { id: jobId } = await operations.jobOfFiles(this.#parts, this.#as('client'), id)
    const content = new Response(body).body ?? Readable.toWeb(Readable.from([]))
    return operations.writeFile(this.#parts, jobId, name, Readable.fromWeb(nodeStream(content)), { sha256, signal })
  }

  async read(
    id: string,
    name: string,
    { from, etag, signal }: Parameters<FileTransport['read']>[2],
  ): Promise<WireDownload> {
    signal?.throwIfAborted()
    const { id: jobId } = await operations.jobOfFiles(this.#parts, this.#as('viewer'), id)
    const content = await openFrom(this.#parts.fileService.files, { jobId, name, from, etag })
    if (content === undefined) throw operations.fileNotFound(name)
    const { file, range, body } = content
    signal?.addEventListener('abort', () => body.destroy(), { once: true })
    return { body: webStream(body), from: range?.start ?? 0, bytes: file.bytes, etag: file.etag }
  }

  async delete(id: string, name: string): Promise<void> {
    await operations.deleteFile(this.#parts, this.#as('client'), id, name)
  }

  async link(id: string, query: WireQuery): Promise<FileGrantBody> {
    return operations.linkFile(this.#parts, this.#as('viewer'), id, given(query), this.#parts.base())
  }

  async grantUpload(id: string, query: WireQuery): Promise<FileGrantBody> {
    return operations.grantUpload(this.#parts, this.#as('client'), id, given(query), this.#parts.base())
  }
}

/** The whole file if it is not the one of which the caller has a part. */
async function openFrom(
  files: JobFiles,
  { jobId, name, from, etag }: { jobId: string; name: string; from: number; etag: string | undefined },
): Promise<FileContent | undefined> {
  if (from === 0) return files.get(jobId, name)
  const isSame = etag === undefined || (await files.head(jobId, name))?.etag === etag
  return files.get(jobId, name, isSame ? { start: from } : undefined)
}

function given(query: WireQuery): WireQuery {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined))
}

/** Boundary: web streams have one type in Node and another in the types of browsers. */
function nodeStream(body: unknown): Parameters<typeof Readable.fromWeb>[0] {
  return body as Parameters<typeof Readable.fromWeb>[0]
}

/** Boundary: the same in the other direction. */
function webStream(body: Readable): ReadableStream<Uint8Array> {
  return Readable.toWeb(body) as ReadableStream<Uint8Array>
}
