/** Longer heads are left to Node's parser. */
const HEAD_BYTES_MAX = 4_096
const HEAD_END = Buffer.from('\r\n\r\n')
/** The headers that say where a message ends or what becomes of its connection, and that of web pages, in any spelling. */
const SPECIAL =
  /\r\n(?:content-length|transfer-encoding|connection|proxy-connection|keep-alive|upgrade|expect|te|trailer|origin|http2-settings):[^\r\n]*/gi
/** One way to read each line: with two, a head of forty lines that is not plain would be tried in 2⁴⁰ ways. */
const PLAIN_HEAD = /^(GET|POST|PUT|PATCH|DELETE) (\/[!-~]*) HTTP\/1\.1(?:\r\n[A-Za-z0-9_-]+:[ -~]*)+$/
const LENGTH = /^\r\ncontent-length: ?(\d{1,7})$/i
const KEEP_ALIVE = /^\r\nconnection: ?keep-alive$/i

/** A whole request, as it lies in what a connection has sent. */
export interface FramedRequest {
  readonly method: string
  readonly url: string
  /** The first byte behind it. */
  readonly end: number
}

/**
 * The request that begins at this byte of `chunk`, if all of it is there and there can be no two opinions about where it ends: plain
 * ASCII, one header in each line, at most one `Content-Length` of plain digits, and nothing else that has a say in it. Of every other one nothing
 * is said, be it valid or not.
 */
export function framedRequest(chunk: Buffer, start: number): FramedRequest | undefined {
  const head = isSame(last, chunk, start) ? last : readHead(chunk, start)
  if (head === undefined) return undefined
  last = head
  const { method, url, bytes, bodyLength } = head
  const end = start + bytes.length + bodyLength
  return end > chunk.length ? undefined : { method, url, end }
}

interface Head {
  /** To the empty line. */
  readonly bytes: Buffer
  readonly method: string
  readonly url: string
  readonly bodyLength: number
}

/** Whoever sends much sends the same head again and again, and the same bytes say the same. */
let last: Head | undefined

function isSame(head: Head | undefined, chunk: Buffer, start: number): head is Head {
  if (head === undefined) return false
  const { bytes } = head
  const end = start + bytes.length
  return end <= chunk.length && bytes.compare(chunk, start, end) === 0
}

function readHead(chunk: Buffer, start: number): Head | undefined {
  const headEnd = chunk.indexOf(HEAD_END, start)
  if (headEnd === -1 || headEnd - start > HEAD_BYTES_MAX) return undefined
  const text = chunk.toString('latin1', start, headEnd)
  const [, method, url] = PLAIN_HEAD.exec(text) ?? []
  if (method === undefined || url === undefined) return undefined
  const bodyLength = bodyLengthOf(text)
  if (bodyLength === undefined) return undefined
  // A copy: what a connection has sent would be kept as a whole.
  return { bytes: Buffer.from(chunk.subarray(start, headEnd + HEAD_END.length)), method, url, bodyLength }
}

function bodyLengthOf(head: string): number | undefined {
  let length: number | undefined
  for (const line of head.match(SPECIAL) ?? []) {
    const [, digits] = LENGTH.exec(line) ?? []
    if (digits !== undefined && length === undefined) length = Number(digits)
    else if (!KEEP_ALIVE.test(line)) return undefined
  }
  return length ?? 0
}
