import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { parseRange } from '@impresario/files'
import type { JobFiles } from '@impresario/files'
import { ImpresarioError, isImpresarioError } from '@impresario/protocol'

/** What a browser may show of a file is decided by its name; it is always saved and never opened as a page of this server. */
export function attachment(name: string): string {
  const base = name.slice(name.lastIndexOf('/') + 1)
  const plain = base.replaceAll(/[^\w.\- ]/g, '_')
  const encoded = encodeURIComponent(base).replaceAll(
    /['()*]/g,
    (char) => `%${char.codePointAt(0)?.toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}

/** Sends a file, or the part that `Range` asks for. Who has the file already gets nothing of it. */
export async function sendFile(
  files: JobFiles,
  file: { readonly jobId: string; readonly name: string },
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { name } = file
  const { headers } = request
  const content = await (request.method === 'HEAD' ? describeFile(files, file) : openFile(files, file, headers, reply))
  if (content === undefined) throw new ImpresarioError('FILE_NOT_FOUND', `The job has no file "${name}".`)
  const { file: stored, range, body } = content
  const etag = `"${stored.etag}"`
  void reply.headers({
    'accept-ranges': 'bytes',
    etag,
    'last-modified': new Date(stored.modifiedAt).toUTCString(),
    'cache-control': 'private, no-cache',
  })
  if (matches(headers['if-none-match'], etag)) {
    body.destroy()
    return reply.code(304).send()
  }
  if (range === undefined) return reply.headers(contentHeaders(name, stored.bytes)).send(body)
  const { start, end } = range
  void reply.code(206).header('content-range', `bytes ${start}-${end}/${stored.bytes}`)
  return reply.headers(contentHeaders(name, end - start + 1)).send(body)
}

async function openFile(
  files: JobFiles,
  { jobId, name }: { readonly jobId: string; readonly name: string },
  headers: FastifyRequest['headers'],
  reply: FastifyReply,
): ReturnType<JobFiles['get']> {
  const range = parseRange(headers.range)
  const ifRange = headers['if-range']
  try {
    if (range === undefined || ifRange === undefined) return await files.get(jobId, name, range)
    // Who has a part of a file that has changed since gets all of it.
    const hasSame = async (): Promise<boolean> => ifRange === `"${(await files.head(jobId, name))?.etag ?? ''}"`
    if (!(await hasSame())) return await files.get(jobId, name)
    const content = await files.get(jobId, name, range).catch(async (error: unknown) => {
      // It may have been replaced between the two looks by one that has no such part.
      if (!isImpresarioError(error, 'RANGE_NOT_SATISFIABLE') || (await hasSame())) throw error
      return undefined
    })
    if (content !== undefined && ifRange === `"${content.file.etag}"`) return content
    // It was replaced between the two looks.
    content?.body.destroy()
    return await files.get(jobId, name)
  } catch (error) {
    if (isImpresarioError(error, 'RANGE_NOT_SATISFIABLE')) {
      void reply.header('content-range', `bytes */${error.details['bytes'] ?? 0}`)
    }
    throw error
  }
}

/** As much as `HEAD` asks for: nothing of the file is read. A range means nothing there. */
async function describeFile(
  files: JobFiles,
  { jobId, name }: { readonly jobId: string; readonly name: string },
): ReturnType<JobFiles['get']> {
  const file = await files.head(jobId, name)
  return file && { file, range: undefined, body: Readable.from([]) }
}

function contentHeaders(name: string, bytes: number): Readonly<Record<string, string>> {
  return {
    'content-type': 'application/octet-stream',
    'content-length': String(bytes),
    'content-disposition': attachment(name),
  }
}

/** Weakly, as HTTP wants it here: a proxy that compresses marks what it passes on with `W/`. */
function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.trim() === '*' || header.split(',').some((one) => one.trim().replace(/^W\//, '') === etag)
}
