import { ImpresarioError } from '@impresario/protocol'
import type { ByteRange } from './file-store.ts'

/** The first and last byte that are meant, of a file of this size. */
export function resolveRange(range: ByteRange, bytes: number): { readonly start: number; readonly end: number } {
  const start = range.start < 0 ? Math.max(0, bytes + range.start) : range.start
  const end = Math.min(range.start < 0 ? bytes - 1 : (range.end ?? bytes - 1), bytes - 1)
  if (start > end || (range.start === 0 && range.end !== undefined && range.end < 0)) {
    throw new ImpresarioError(
      'RANGE_NOT_SATISFIABLE',
      `The file has ${bytes} bytes, and none of the range is among them.`,
      {
        details: { bytes },
      },
    )
  }
  return { start, end }
}

/** What the header `Range` asks for. Nothing: the whole file, as for everything that is no single range of bytes. */
export function parseRange(header: string | undefined): ByteRange | undefined {
  const { first, last } = /^bytes=(?<first>\d{0,15})-(?<last>\d{0,15})$/i.exec(header?.trim() ?? '')?.groups ?? {}
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  if (first === '') return { start: last === '0' ? Infinity : -Number(last) }
  if (last === '') return { start: Number(first) }
  return Number(last) < Number(first) ? undefined : { start: Number(first), end: Number(last) }
}
