/** The words of the seed for the work on one file. */
export type TaskType = 'parse' | 'index' | 'update' | 'delete'
export type TaskStatus = 'pending' | 'running' | 'completed' | 'failed' | 'retry'

/** What has happened to a file. */
export type Change = 'present' | 'gone'

/** Work on one file, as it is put into the queue. */
export interface FileTask {
  readonly path: string
  readonly change: Change
  /** 0 is low, 1 normal, 2 high. */
  readonly priority: number
}

export interface EndedTask extends FileTask {
  readonly jobId: string
  readonly isCompleted: boolean
  readonly error: string | undefined
}

export interface QueueStats {
  /** Tasks that were put in and have not ended. */
  readonly size: number
  readonly maxSize: number
  readonly byPriority: readonly number[]
  readonly enqueued: number
  readonly completed: number
  readonly failed: number
}

/** The bounded queue of files. Replaceable: an option of `createDocuments`. */
export interface TaskQueue {
  /** Takes up what an earlier process left unfinished, and gives it. */
  open(): Promise<readonly FileTask[]>
  /** Resolves when the task is safe; rejects with `QUEUE_FULL` when there is no room. */
  enqueue(task: FileTask): Promise<string>
  /** Resolves when there is room again. */
  room(): Promise<void>
  onEnded(listener: (task: EndedTask) => void): void
  stats(): QueueStats
  /** No more tasks. What is in it stays, for this process or the next. */
  close(): Promise<void>
}
