import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { FileRef } from '@impresario/protocol'
import { sendFile } from '../files/download.ts'
import type { TaskFileDesk } from '../files/task-file-desk.ts'
import { refuseRest, takeFiles, uploadOf } from '../files/upload.ts'
import { workerOf } from '../auth/worker-identity.ts'
import { WORKER_ROUTES } from './worker-route-table.ts'

interface FileRequest {
  readonly Params: { readonly taskId: string }
  readonly Querystring: { readonly name?: string; readonly prefix?: string }
}

/** The files of the job that a worker has a task of, as long as it has it. */
export function registerTaskFileRoutes(app: FastifyInstance, desk: TaskFileDesk): void {
  app.route<FileRequest>({
    ...WORKER_ROUTES.listFiles,
    handler: async (request) => {
      const files = await desk.list(workerOf(request), request.params.taskId, request.query.prefix ?? '')
      return { files }
    },
  })

  app.route<FileRequest>({
    ...WORKER_ROUTES.readFile,
    handler: async (request, reply) => {
      const { files, file } = await desk.find(workerOf(request), request.params.taskId, request.query.name ?? '')
      return sendFile(files, file, request, reply)
    },
  })

  void app.register(async (scope) => {
    takeFiles(scope)
    scope.route<FileRequest>({
      ...WORKER_ROUTES.writeFile,
      handler: async (request, reply) => {
        try {
          return await write(desk, request, reply)
        } catch (error) {
          refuseRest(request)
          throw error
        }
      },
    })
  })
}

async function write(desk: TaskFileDesk, request: FastifyRequest<FileRequest>, reply: FastifyReply): Promise<FileRef> {
  const { body, ...expected } = uploadOf(request, reply)
  return desk.write(workerOf(request), request.params.taskId, request.query.name ?? '', body, expected)
}
