/** A file of a job. */
export interface FileRef {
  /** Within the job, such as `in/report.pdf`. */
  readonly name: string
  /** `s3://<bucket>/jobs/<job id>/<name>`: what a task's params may hold, and what a worker finds as a local path. */
  readonly uri: string
  readonly bytes: number
  readonly etag: string
}

/**
 * The files of a job, for its handlers and for its workers. Names are paths within the job. Local copies go when the turn or
 * the task ends; files of the job go with the job.
 */
export interface TaskFiles {
  /** Copies a file of the job (by its name or its `s3://` address) to a local path, and returns that path. */
  download(name: string): Promise<string>
  /** Keeps a local file with the job. Without a name it gets that of the local file. One of the same name is replaced. */
  upload(path: string, name?: string): Promise<FileRef>
  readJson(name: string): Promise<unknown>
  writeJson(name: string, value: unknown): Promise<FileRef>
  /** All files whose names begin with this, in the order of their names. */
  list(prefix?: string): Promise<readonly FileRef[]>
}
