import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ImpresarioError } from '@impresario/protocol'
import type { FileUploadReply } from '@impresario/protocol'
import * as schemas from '@impresario/protocol/schemas'
import { attachment, sendFile } from '../files/download.ts'
import { refuseRest, takeFiles, uploadOf } from '../files/upload.ts'
import { callerOf } from '../http/access.ts'
import { readQuery } from '../http/route.ts'
import * as operations from './file-operations.ts'
import type { FileOperationParts } from './file-operations.ts'
import { FILE_ROUTES } from './file-route-descriptions.ts'
import { jobNotFound } from './job-access.ts'

export interface FileRoutesOptions extends FileOperationParts {
  /** The address for links; empty for the address that the request was sent to. */
  readonly publicUrl: string
}

interface FileParams {
  readonly job_id: string
  readonly filename: string
}

/** How long an address of the store is valid to which a request is redirected: the client follows it at once. */
const REDIRECT_MS = 60_000

/** The files of a job, for its owner. */
export function registerFileRoutes(app: FastifyInstance, options: FileRoutesOptions): void {
  registerGrantRoutes(app, options)
  const ownId = async (request: FastifyRequest): Promise<string> => {
    const { job_id: jobId } = request.params as FileParams
    return (await operations.jobOfFiles(options, callerOf(request), jobId)).id
  }

  app.get<{ Params: FileParams }>('/jobs/:job_id/files', FILE_ROUTES.list, async (request) =>
    operations.listFiles(options, callerOf(request), request.params.job_id, request.query),
  )

  app.get<{ Params: FileParams }>(
    '/jobs/:job_id/files/content/:filename',
    { ...FILE_ROUTES.read, exposeHeadRoute: true },
    async (request, reply) => {
      const jobId = await ownId(request)
      return sendFile(options.fileService.files, { jobId, name: request.params.filename }, request, reply)
    },
  )

  app.get<{ Params: FileParams }>(
    '/jobs/:job_id/files/download/:filename',
    { ...FILE_ROUTES.download, exposeHeadRoute: true },
    async (request, reply) => sendOrRedirect(options, await ownId(request), request, reply),
  )

  app.delete<{ Params: FileParams }>('/jobs/:job_id/files/content/:filename', FILE_ROUTES.delete, async (request) => {
    const { job_id: jobId, filename: name } = request.params
    return operations.deleteFile(options, callerOf(request), jobId, name)
  })

  void app.register(async (scope) => {
    takeFiles(scope)
    scope.put<{ Params: FileParams }>(
      '/jobs/:job_id/files/content/:filename',
      FILE_ROUTES.write,
      async (request, reply) =>
        refusingRest(request, async () => upload(options, await ownId(request), request, reply)),
    )
  })
}

/** Addresses that work without a token. */
function registerGrantRoutes(app: FastifyInstance, options: FileRoutesOptions): void {
  const baseOf = (request: FastifyRequest): string => options.publicUrl || `${request.protocol}://${request.host}`

  app.get<{ Params: FileParams }>('/jobs/:job_id/files/upload', FILE_ROUTES.grantUpload, async (request, reply) => {
    void reply.header('cache-control', 'no-store')
    const { params, query } = request
    return operations.grantUpload(options, callerOf(request), params.job_id, query, baseOf(request))
  })

  app.get<{ Params: FileParams }>('/jobs/:job_id/files/link', FILE_ROUTES.link, async (request, reply) => {
    void reply.header('cache-control', 'no-store')
    const { params, query } = request
    return operations.linkFile(options, callerOf(request), params.job_id, query, baseOf(request))
  })
}

/** The targets of links. */
export function registerSignedFileRoutes(app: FastifyInstance, options: FileRoutesOptions): void {
  const { engine, fileLinks } = options
  const permitted = async (request: FastifyRequest, method: 'GET' | 'PUT'): Promise<string> => {
    const { job_id: jobId, filename: name } = request.params as FileParams
    const { capability } = readQuery(schemas.fileCapabilityQuery, request.query)
    if (capability === undefined) throw new ImpresarioError('UNAUTHENTICATED', 'This needs a complete link.')
    fileLinks.check(capability, { jobId, name, method })
    if ((await engine.readJob(jobId)) === undefined) throw jobNotFound()
    return jobId
  }
  app.get<{ Params: FileParams }>(
    '/files/:job_id/:filename',
    { ...FILE_ROUTES.signedRead, exposeHeadRoute: true },
    async (request, reply) => sendOrRedirect(options, await permitted(request, 'GET'), request, reply),
  )
  void app.register(async (scope) => {
    takeFiles(scope)
    scope.put<{ Params: FileParams }>('/files/:job_id/:filename', FILE_ROUTES.signedWrite, async (request, reply) =>
      refusingRest(request, async () => upload(options, await permitted(request, 'PUT'), request, reply)),
    )
  })
}

async function upload(
  options: FileRoutesOptions,
  jobId: string,
  request: FastifyRequest<{ Params: FileParams }>,
  reply: FastifyReply,
): Promise<FileUploadReply> {
  const { body, ...expected } = uploadOf(request, reply)
  return operations.writeFile(options, jobId, request.params.filename, body, expected)
}

async function refusingRest<T>(request: FastifyRequest, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    refuseRest(request)
    throw error
  }
}

/** To the store itself where it has addresses, so that the bytes do not pass through this process. */
async function sendOrRedirect(
  { fileService }: FileRoutesOptions,
  jobId: string,
  request: FastifyRequest<{ Params: FileParams }>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { filename: name } = request.params
  const { files } = fileService
  // An address of the store is signed for GET alone.
  if (request.method === 'HEAD') return sendFile(files, { jobId, name }, request, reply)
  const way = { method: 'GET', expiresMs: REDIRECT_MS, attachment: attachment(name) } as const
  const url = await files.presign(jobId, name, way)
  if (url === undefined) return sendFile(files, { jobId, name }, request, reply)
  if ((await files.head(jobId, name)) === undefined) throw operations.fileNotFound(name)
  return reply.header('cache-control', 'no-store').redirect(url, 302)
}
