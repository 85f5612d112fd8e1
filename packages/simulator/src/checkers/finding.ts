/** A promise that was not kept. */
export interface Finding {
  readonly rule: string
  readonly problem: string
}
