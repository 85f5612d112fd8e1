/** One message on its way out. */
export interface Parcel {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export type Sent =
  | {
      readonly type: 'answered'
      readonly status: number
      readonly retryAfter: string | undefined
      /** A short plain text from the receiver, if it may be shown. */
      readonly excerpt: string | undefined
    }
  | {
      readonly type: 'failed'
      /** A sentence for the delivery log. */
      readonly error: string
      /** The address itself is not allowed: another attempt would change nothing. */
      readonly isPermanent: boolean
    }

/** The way out. Never rejects: that a receiver cannot be reached is an answer too. */
export interface Deliver {
  send(parcel: Parcel): Promise<Sent>
}
