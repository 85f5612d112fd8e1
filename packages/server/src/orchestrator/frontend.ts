/** What an orchestrator shows to the outside. */
export interface Frontend {
  /** Lets those who come here find another way, before anything stops. */
  drain(): Promise<void>
  /** Comes last, so that results are taken to the end. */
  close(): Promise<void>
}

export const NO_FRONTEND: Frontend = { drain: () => Promise.resolve(), close: () => Promise.resolve() }
