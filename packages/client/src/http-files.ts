import { CLIENT_PATHS, type FileGrantBody, type FileListBody, type FileUploadReply } from '@impresario/protocol'
import type { Connection } from './connection.ts'
import type { FileTransport, WireDownload, WireQuery, WireRead, WireUpload } from './file-transport.ts'

/** Files over HTTP. */
export class HttpFiles implements FileTransport {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  list(id: string, query: WireQuery): Promise<FileListBody> {
    return this.#get(CLIENT_PATHS.files(id), query)
  }

  async write(id: string, name: string, { body, sha256, signal }: WireUpload): Promise<FileUploadReply> {
    const response = await this.#connection.stream(CLIENT_PATHS.fileContent(id, name), {
      method: 'PUT',
      body,
      headers: {
        'content-type': 'application/octet-stream',
        ...(sha256 === undefined ? {} : { 'x-content-sha256': sha256 }),
      },
      signal,
    })
    return believed(await response.json())
  }

  async read(id: string, name: string, { from, etag, signal }: WireRead): Promise<WireDownload> {
    const headers = {
      ...(from > 0 ? { range: `bytes=${from}-` } : {}),
      ...(from > 0 && etag !== undefined ? { 'if-range': `"${etag}"` } : {}),
    }
    const path = CLIENT_PATHS.fileContent(id, name)
    const response = await this.#connection.stream(path, { method: 'GET', headers, signal })
    const isPart = response.status === 206
    const total = isPart ? response.headers.get('content-range')?.split('/')[1] : response.headers.get('content-length')
    return {
      body: response.body ?? new ReadableStream(),
      from: isPart ? from : 0,
      bytes: Number(total ?? 0),
      etag: (response.headers.get('etag') ?? '').replaceAll('"', ''),
    }
  }

  async delete(id: string, name: string): Promise<void> {
    await this.#connection.call(CLIENT_PATHS.fileContent(id, name), { method: 'DELETE', repeatable: false })
  }

  link(id: string, query: WireQuery): Promise<FileGrantBody> {
    return this.#get(CLIENT_PATHS.fileLink(id), query)
  }

  grantUpload(id: string, query: WireQuery): Promise<FileGrantBody> {
    return this.#get(CLIENT_PATHS.fileUpload(id), query)
  }

  async #get<T>(path: string, query: WireQuery): Promise<T> {
    return believed((await this.#connection.call(path, { query, repeatable: true })).body)
  }
}

/** The boundary at which a server's answer is believed to be what its route describes. */
function believed<T>(body: unknown): T {
  return body as T
}
