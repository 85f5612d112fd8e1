import { wallTime } from '@impresario/core'
import type { Clock, Job } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import type { PutOptions, StoredFile } from '@impresario/files'
import { CLIENT_PATHS, ImpresarioError, mustBeFileName } from '@impresario/protocol'
import type { FileBody, FileDeletedReply, FileGrantBody, FileListBody, FileUploadReply } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import type { FileLinks } from '../files/file-links.ts'
import type { FileService } from '../files/file-service.ts'
import type { Caller } from '../http/access.ts'
import { readQuery } from '../http/route.ts'
import { visibleJob } from './job-access.ts'
import { withoutEndSlashes } from '../runtime/end-slashes.ts'

export interface FileOperationParts {
  readonly engine: Engine
  readonly clock: Clock
  readonly fileService: FileService
  readonly fileLinks: FileLinks
}

const UPLOAD_SECONDS = 3_600
const LINK_SECONDS = 604_800

/** The job whose files are asked for, if the caller may see it. */
export async function jobOfFiles({ engine }: FileOperationParts, caller: Caller, jobId: string): Promise<Job> {
  return (await visibleJob(engine, caller, jobId)).value
}

export async function listFiles(
  parts: FileOperationParts,
  caller: Caller,
  id: string,
  query: unknown,
): Promise<FileListBody> {
  const { id: jobId } = await jobOfFiles(parts, caller, id)
  const { prefix = '', after, limit } = readQuery(schemas.fileListQuery, query)
  const { files } = parts.fileService
  const page = await files.list(jobId, prefix, { after, ...(limit === undefined ? {} : { limit }) })
  const next = page.next === undefined ? {} : { next: page.next }
  return { files: page.files.map((file) => fileBody(files.uri(jobId, file.key), file)), ...next }
}

/** The caller has checked that the job may be written to. */
export async function writeFile(
  { fileService: { files } }: FileOperationParts,
  jobId: string,
  given: string,
  body: AsyncIterable<Uint8Array>,
  expected: PutOptions,
): Promise<FileUploadReply> {
  const { key: name, bytes, etag, sha256 } = await files.put(jobId, given, body, expected)
  return { status: 'uploaded', s3_uri: files.uri(jobId, name), name, bytes, etag, sha256 }
}

export async function deleteFile(
  parts: FileOperationParts,
  caller: Caller,
  id: string,
  name: string,
): Promise<FileDeletedReply> {
  const { id: jobId } = await jobOfFiles(parts, caller, id)
  const { files } = parts.fileService
  if ((await files.head(jobId, name)) === undefined) throw fileNotFound(name)
  await files.delete(jobId, name)
  return { status: 'deleted', name }
}

/** `base`: where the server is reached. Fails if there is no such address. */
export async function grantUpload(
  parts: FileOperationParts,
  caller: Caller,
  id: string,
  query: unknown,
  base: string,
): Promise<FileGrantBody> {
  const { id: jobId } = await jobOfFiles(parts, caller, id)
  const { filename: name, bytes, expires_in: seconds = UPLOAD_SECONDS } = readQuery(schemas.fileUploadQuery, query)
  const { files } = parts.fileService
  mustBeFileName('filename', name)
  // The store can enforce the size only if it is part of the signature; and room can be kept only for what has a size.
  const direct = bytes === undefined ? undefined : await files.presignUpload(jobId, name, bytes, seconds * 1_000)
  // What comes through this server is counted when it comes. A refusal now saves the caller from trying.
  if (direct === undefined && bytes !== undefined) await files.mustHaveRoom(jobId, name, bytes)
  const url = direct ?? signedUrl(parts, base, { jobId, name, method: 'PUT', seconds })
  return { url, method: 'PUT', expires_in: seconds }
}

export async function linkFile(
  parts: FileOperationParts,
  caller: Caller,
  id: string,
  query: unknown,
  base: string,
): Promise<FileGrantBody> {
  const { id: jobId } = await jobOfFiles(parts, caller, id)
  const { filename: name, expires_in: seconds = LINK_SECONDS } = readQuery(schemas.fileLinkQuery, query)
  if ((await parts.fileService.files.head(jobId, name)) === undefined) throw fileNotFound(name)
  return { url: signedUrl(parts, base, { jobId, name, method: 'GET', seconds }), method: 'GET', expires_in: seconds }
}

export function fileNotFound(name: string): ImpresarioError {
  return new ImpresarioError('FILE_NOT_FOUND', `The job has no file "${name}".`)
}

interface Signed {
  readonly jobId: string
  readonly name: string
  readonly method: 'GET' | 'PUT'
  readonly seconds: number
}

function signedUrl({ fileLinks, clock }: FileOperationParts, base: string, { seconds, ...file }: Signed): string {
  if (base === '') {
    throw new ImpresarioError('INVALID_CONFIGURATION', 'Links need PUBLIC_URL: this orchestrator has no address.')
  }
  const capability = fileLinks.issue({ ...file, expiresAt: wallTime(clock) + seconds * 1_000 })
  return `${withoutEndSlashes(base)}${CLIENT_PATHS.signedFile(file.jobId, file.name)}?capability=${capability}`
}

function fileBody(uri: string, { key: name, bytes, etag, modifiedAt }: StoredFile): FileBody {
  return { name, uri, bytes, etag, modified_at: Math.floor(modifiedAt / 1_000) }
}
