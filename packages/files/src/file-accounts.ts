export interface Usage {
  readonly files: number
  readonly bytes: number
}

/** A file that is about to be written, for the account of its client. */
export interface ComingFile {
  readonly isNew: boolean
  /** Undefined where the size is not known before the end. */
  readonly bytes: number | undefined
  readonly bytesMax: number
  /** What counts under its name already: the file that it replaces, or what was promised there if that is more. */
  readonly replaces: number
  /** What was promised under its name: so much counts, even if the file is smaller. */
  readonly promised: number
}

export interface Booked {
  /** As much as there is room for. */
  readonly bytesMax: number
  /** The upload is over, with so many bytes; undefined if nothing was written. Never throws. */
  settle(written: number | undefined): Promise<void>
}

/**
 * A file that may come at any moment, past this process, by an address of the store. The address can be used again until it
 * ends, so room is kept until then, whether the file has come, was deleted, or never comes.
 */
export interface PromisedFile {
  readonly name: string
  readonly bytes: number
}

export interface PromisedFiles {
  /** Changes with each promise of the job. */
  readonly version: number
  readonly files: readonly PromisedFile[]
}

export interface NewPromise extends PromisedFile {
  readonly expiresMs: number
  /** That of the promises which the caller has looked at. */
  readonly version: number
}

/** Counts the files of all jobs of a client together, and knows what was promised to the jobs, for all instances. */
export interface FileAccounts {
  /** Keeps room for the file, or refuses it. Nothing where no limit applies. */
  book(jobId: string, file: ComingFile): Promise<Booked | undefined>
  /** A file was deleted, and so much counts no longer. Never throws. */
  removed(jobId: string, by: Usage): Promise<void>
  promised(jobId: string): Promise<PromisedFiles>
  /**
   * Keeps room for a file that goes past this process, or refuses it. `conflict`: there is another promise since the caller
   * looked, so it has to look again. `full`: the job has too many promises to keep one more.
   */
  promise(jobId: string, promise: NewPromise, file: ComingFile): Promise<'kept' | 'conflict' | 'full'>
}
