import type { FastifyInstance, FastifyReply } from 'fastify'
import type { WebsocketHandler } from '@fastify/websocket'
import { ImpresarioError } from '@impresario/protocol'
import type { Sockets } from './sockets.ts'
import { WORKER_ROUTES } from './worker-route-table.ts'
import { proofOf } from '../auth/worker-identity.ts'

/** The WebSocket of a worker, with its id in the path or without. Who it is was found out before the upgrade. */
export function registerSocketRoutes(app: FastifyInstance, sockets: Sockets): void {
  const wsHandler: WebsocketHandler = (socket, request) => {
    sockets.open(socket, proofOf(request), request.workerId)
  }
  const handler = async (_request: unknown, reply: FastifyReply): Promise<never> => {
    void reply.header('upgrade', 'websocket')
    throw new ImpresarioError('INVALID_REQUEST', 'This is a WebSocket: ask for an upgrade.')
  }
  app.route({ ...WORKER_ROUTES.socket, handler, wsHandler })
  app.route({ ...WORKER_ROUTES.workerSocket, handler, wsHandler })
}
