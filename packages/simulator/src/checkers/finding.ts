/** A guarantee that was violated. */
export interface Finding {
  readonly rule: string
  readonly problem: string
}
