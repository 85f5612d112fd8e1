import * as schemas from '@impresario/protocol/schemas'
import { route } from '../http/route.ts'
import type { RouteDeclaration, UntaggedRoute } from '../http/route.ts'

const BYTES = ['application/octet-stream']
const PART_HEADERS = {
  'Accept-Ranges': '`bytes`.',
  ETag: 'Changes with the content; for `If-Range` and `If-None-Match`.',
}
const RANGES =
  'A `Range` of bytes gets that part (206), so that a download that broke off can go on; with `If-Range` only if the file is still the same. `HEAD` gives the headers alone.'
const SENT =
  'The body is the file, of any type and size. It is kept as it comes, when all of it has come. A `Content-Length` and an `X-Content-SHA256` are checked.'

/** A file in a directory comes from here, one in S3 from there. */
const FROM_STORE = {
  200: { description: 'The file, where it is kept in a directory.', types: BYTES, headers: PART_HEADERS },
  206: { description: 'The part that `Range` asked for.', types: BYTES, headers: PART_HEADERS },
  302: { description: 'To an address of S3 that is good for a minute.', headers: { Location: 'The address.' } },
}
const READ_REFUSALS = [
  'INVALID_REQUEST',
  'JOB_NOT_FOUND',
  'FILE_NOT_FOUND',
  'RANGE_NOT_SATISFIABLE',
  'FILES_UNAVAILABLE',
] as const
const WRITE_REFUSALS = [
  'INVALID_REQUEST',
  'JOB_NOT_FOUND',
  'FILE_TOO_LARGE',
  'FILE_MISMATCH',
  'LIMIT_EXCEEDED',
  'FILES_UNAVAILABLE',
] as const

function fileRoute(given: UntaggedRoute): RouteDeclaration {
  return route({ ...given, tag: 'files' })
}

/** Bodies of these are handed on piece by piece. */
function uploadRoute(given: UntaggedRoute): RouteDeclaration {
  const declared = fileRoute(given)
  return { ...declared, config: { ...declared.config, isFile: true } }
}

export const FILE_ROUTES = {
  list: fileRoute({
    access: 'viewer',
    scope: 'jobs:read',
    id: 'listFiles',
    summary: 'List the files of a job',
    params: schemas.jobParams,
    query: schemas.fileListQuery,
    replies: { 200: { description: 'One page of files, in the order of their names.', body: schemas.fileListBody } },
    refusals: ['INVALID_REQUEST', 'JOB_NOT_FOUND', 'FILES_UNAVAILABLE'],
  }),
  read: fileRoute({
    access: 'viewer',
    scope: 'jobs:read',
    id: 'readFile',
    summary: 'Read a file of a job',
    description: RANGES,
    params: schemas.fileParams,
    replies: {
      200: { description: 'The file.', types: BYTES, headers: PART_HEADERS },
      206: { description: 'The part that `Range` asked for.', types: BYTES, headers: PART_HEADERS },
      304: { description: 'The file is the one that `If-None-Match` names.' },
    },
    refusals: READ_REFUSALS,
  }),
  download: fileRoute({
    access: 'viewer',
    scope: 'jobs:read',
    id: 'downloadFile',
    summary: 'Read a file of a job, from the store itself where that is possible',
    description: `This path stays the same as long as the file is there. ${RANGES}`,
    params: schemas.fileParams,
    replies: FROM_STORE,
    refusals: READ_REFUSALS,
  }),
  write: uploadRoute({
    access: 'client',
    scope: 'jobs:write',
    id: 'writeFile',
    summary: 'Keep a file with a job',
    description: `${SENT} A file of the same name is replaced.`,
    params: schemas.fileParams,
    replies: { 200: { description: 'The file is kept.', body: schemas.fileUploadReply } },
    refusals: WRITE_REFUSALS,
  }),
  delete: fileRoute({
    access: 'client',
    scope: 'jobs:write',
    id: 'deleteFile',
    summary: 'Delete a file of a job',
    params: schemas.fileParams,
    replies: { 200: { description: 'The file is gone.', body: schemas.fileDeletedReply } },
    refusals: ['INVALID_REQUEST', 'JOB_NOT_FOUND', 'FILE_NOT_FOUND', 'FILES_UNAVAILABLE'],
  }),
  grantUpload: fileRoute({
    access: 'client',
    scope: 'jobs:write',
    id: 'grantUpload',
    summary: 'An address that takes one file of a job, without a token',
    description:
      'For browsers and other programs that must not have a token. `PUT` the file there. With `bytes` the address may be one of S3, which takes a file of exactly that size and counts for the limits until it has expired; without it, it is one of this server.',
    params: schemas.jobParams,
    query: schemas.fileUploadQuery,
    replies: { 200: { description: 'The address.', body: schemas.fileGrantBody } },
    refusals: ['INVALID_REQUEST', 'JOB_NOT_FOUND', 'FILE_TOO_LARGE', 'LIMIT_EXCEEDED', 'FILES_UNAVAILABLE'],
  }),
  link: fileRoute({
    access: 'viewer',
    scope: 'jobs:read',
    id: 'linkFile',
    summary: 'A link that reads one file of a job, without a token',
    description:
      'It leads to the file as it is when the link is used. Whoever has it may read the file until it expires.',
    params: schemas.jobParams,
    query: schemas.fileLinkQuery,
    replies: { 200: { description: 'The link.', body: schemas.fileGrantBody } },
    refusals: ['INVALID_REQUEST', 'JOB_NOT_FOUND', 'FILE_NOT_FOUND', 'FILES_UNAVAILABLE'],
  }),
  signedRead: fileRoute({
    access: 'capability',
    scope: 'jobs:read',
    id: 'readLinkedFile',
    summary: 'Read a file by a link',
    description: `Needs a capability. ${RANGES}`,
    params: schemas.fileParams,
    query: schemas.fileCapabilityQuery,
    replies: FROM_STORE,
    refusals: READ_REFUSALS,
  }),
  signedWrite: uploadRoute({
    access: 'capability',
    scope: 'jobs:write',
    id: 'writeLinkedFile',
    summary: 'Send a file by a link',
    description: `Needs a capability. ${SENT}`,
    params: schemas.fileParams,
    query: schemas.fileCapabilityQuery,
    replies: { 200: { description: 'The file is kept.', body: schemas.fileUploadReply } },
    refusals: WRITE_REFUSALS,
  }),
} as const
