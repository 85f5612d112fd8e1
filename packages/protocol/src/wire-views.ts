/** Filters of the job list under a name. */
export interface SavedViewBody {
  readonly name: string
  /** The filters as the address of the dashboard has them. */
  readonly search: Readonly<Record<string, string>>
  readonly updated_at: number
}

export interface SavedViewRequest {
  readonly search: Readonly<Record<string, string>>
}

/** What has changed since the message before, in a stream of changes. Hints: read again what you show. */
export interface ChangesBody {
  readonly jobs: readonly {
    readonly job_id: string
    readonly version: number
    readonly status: string
    readonly owner: string
    readonly blueprint_name: string
  }[]
  /** More jobs have changed than are named. */
  readonly more: boolean
  /** Workers came, went or changed. */
  readonly workers: boolean
}
