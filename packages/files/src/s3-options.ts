/** In a file of its own: the types of the optional SDK must not reach programs that do without it. */
export interface S3Options {
  readonly endpoint?: string | undefined
  readonly region: string
  readonly bucket: string
  /** Without them the SDK looks where AWS keeps them: environment, profile, the role of the machine. */
  readonly accessKey?: string | undefined
  readonly secretKey?: string | undefined
  readonly concurrencyMax: number
}
