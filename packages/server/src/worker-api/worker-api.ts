import websocket from '@fastify/websocket'
import type { FastifyInstance } from 'fastify'
import type { Clock, Storage } from '@impresario/core'
import type { Engine } from '@impresario/engine'
import { LIMITS } from '@impresario/protocol'
import { AccessTokens } from '../auth/access-tokens.ts'
import type { Settings } from '../config/config.ts'
import { variesByOrigin } from '../http/cors.ts'
import { isLoopback } from '../auth/credentials.ts'
import { Signatures } from '../auth/signatures.ts'
import type { TaskFileDesk } from '../files/task-file-desk.ts'
import { Sockets } from './sockets.ts'
import type { SocketBounds } from './socket-bounds.ts'
import { WorkerAuth } from '../auth/worker-auth.ts'
import type { WorkerGateway } from '../worker-protocol/worker-gateway.ts'
import type { WorkerCredentials } from '../auth/worker-credentials.ts'
import { openShortWay } from './short-way.ts'
import type { ShortWayOptions } from './short-way.ts'
import { registerWorkerRoutes } from './worker-routes.ts'

/** What the short way needs beside the parts of the worker API. */
type ShortWayParts = Omit<ShortWayOptions, 'auth' | 'pollMs' | 'variesByOrigin' | 'compressionMinBytes'>

export interface WorkerApiOptions extends ShortWayParts {
  readonly settings: Settings
  readonly credentials: { readonly workers: WorkerCredentials }
  readonly storage: Storage
  readonly engine: Engine
  readonly gateway: WorkerGateway
  readonly clock: Clock
  readonly taskFiles: TaskFileDesk
  readonly socketBounds?: Partial<SocketBounds> | undefined
}

export interface WorkerApi {
  readonly auth: WorkerAuth
  readonly gateway: WorkerGateway
  readonly sockets: Sockets
}

/** Everything that workers reach: its parts, and its routes under `/_worker`. */
export function registerWorkerApi(app: FastifyInstance, options: WorkerApiOptions): WorkerApi {
  const { settings, credentials, storage, engine, gateway, clock, log, waits, socketBounds: bounds } = options
  const accessMs = settings.accessTokenSeconds * 1_000
  const refreshMs = settings.refreshTokenSeconds * 1_000
  const tokens = new AccessTokens({ storage, clock, accessMs, refreshMs })
  const allowOpen = isLoopback(settings.apiHost)
  const auth = new WorkerAuth(credentials.workers, { tokens, mode: settings.workerAuthMode, allowOpen })
  const signatures = new Signatures({ storage, clock, secretsOf: (workerId) => auth.signingOf(workerId) })
  const { desk } = engine
  const sockets = new Sockets({
    gateway,
    desk,
    auth,
    signatures,
    clock,
    log,
    ...(bounds === undefined ? {} : { bounds }),
  })
  void app.register(websocket, {
    // Pings are answered by `Sockets`, which counts them.
    options: { maxPayload: LIMITS.socketFrameBytesMax, perMessageDeflate: false, autoPong: false },
    errorHandler: (_error, socket) => socket.terminate(),
    preClose: (done) => {
      sockets.stop()
      done()
    },
  })
  const pollMs = Math.min(settings.workerPollTimeoutSeconds * 1_000, LIMITS.longPollMsMax)
  const routes = { gateway, auth, tokens, signatures, sockets, log, waits, pollMs, taskFiles: options.taskFiles }
  void app.register(
    async (scope) => {
      registerWorkerRoutes(scope, routes)
    },
    { prefix: '/_worker' },
  )
  openShortWay(app, {
    ...options,
    auth,
    pollMs,
    variesByOrigin: variesByOrigin(settings.corsOrigins),
    compressionMinBytes: settings.compressionEnabled ? settings.compressionMinBytes : undefined,
  })
  return { auth, gateway, sockets }
}
