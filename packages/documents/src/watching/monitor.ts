/** Something about a file may have changed. */
export interface FileEvent {
  readonly path: string
  readonly change: 'present' | 'gone'
  /** The monitor's own: a full comparison found it, not an event. */
  readonly isFound: boolean
}

export interface MonitorHealth {
  readonly isHealthy: boolean
  readonly problems: readonly string[]
}

/** Notices files that come, change and go. Replaceable: an option of `createDocuments`. */
export interface FileMonitor {
  /** `notice` resolves when there is room for more: the monitor waits for it. */
  start(notice: (event: FileEvent) => Promise<void>): Promise<void>
  /** Compares everything with the index now. Resolves when all has been noticed. */
  rescan(): Promise<void>
  health(): MonitorHealth
  stop(): Promise<void>
}
