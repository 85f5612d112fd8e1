/** A file of a job, as clients see it. */
export interface FileBody {
  readonly name: string
  /** Its address in the params of tasks: workers find a local path in its place. */
  readonly uri: string
  readonly bytes: number
  readonly etag: string
  /** Unix seconds. */
  readonly modified_at: number
}

export interface FileListBody {
  readonly files: readonly FileBody[]
  readonly next?: string | null
}

export interface FileUploadReply {
  readonly status: 'uploaded'
  readonly s3_uri: string
  readonly name: string
  readonly bytes: number
  readonly etag: string
  readonly sha256: string
}

/** An address that reads or writes one file without a token. */
export interface FileGrantBody {
  readonly url: string
  readonly method: 'GET' | 'PUT'
  /** Seconds. */
  readonly expires_in: number
}

export interface FileDeletedReply {
  readonly status: 'deleted'
  readonly name: string
}
