import type { FileGrantBody, FileListBody, FileUploadReply } from '@impresario/protocol'

/** What a list or a count is narrowed down by, in the words of the API. */
export type WireQuery = Readonly<Record<string, string | number | undefined>>

export interface WireUpload {
  /** A stream is sent piece by piece. */
  readonly body: NonNullable<RequestInit['body']>
  /** In hexadecimal digits. */
  readonly sha256?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface WireRead {
  /** The first byte that is wanted. */
  readonly from: number
  /** Without it the file may be any; with another file, all of it comes. */
  readonly etag?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** A file on its way. */
export interface WireDownload {
  readonly body: ReadableStream<Uint8Array>
  /** The first byte of the body. */
  readonly from: number
  /** The size of the whole file. */
  readonly bytes: number
  readonly etag: string
}

/** The files of jobs, for a client. */
export interface FileTransport {
  list(id: string, query: WireQuery): Promise<FileListBody>
  write(id: string, name: string, upload: WireUpload): Promise<FileUploadReply>
  read(id: string, name: string, wanted: WireRead): Promise<WireDownload>
  delete(id: string, name: string): Promise<void>
  link(id: string, query: WireQuery): Promise<FileGrantBody>
  grantUpload(id: string, query: WireQuery): Promise<FileGrantBody>
}
