/** Decides whether more work is taken in. Every door that starts jobs goes through it; work that has begun never does. */
export interface Admission {
  /**
   * Lets a request in whose data takes so many bytes of memory. Throws `OVERLOADED` when there is more work than can be
   * done.
   */
  enter(bytes: number): Pass
}

/** A request from when it is let in to when it is answered. */
export interface Pass {
  /** Its data fits: from now on it waits only for the storage. */
  begin(): void
  /** It is answered. Safe to call twice. */
  leave(): void
}

/** Takes everything. */
export const OPEN_ADMISSION: Admission = { enter: () => ({ begin: () => {}, leave: () => {} }) }
