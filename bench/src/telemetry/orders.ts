/** What the measuring process asks of the collector. */
export interface CollectorOrders {
  listen(): { readonly url: string }
  taken(): { readonly requests: number; readonly bytes: number }
  close(): void
}
