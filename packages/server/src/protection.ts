import { Server as TlsServer } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import type { Clock, Log } from '@impresario/core'
import type { Admission } from './limits/admission.ts'
import { admitBodies } from './limits/body-admission.ts'
import { compressAnswers } from './http/compression.ts'
import { boundConnections } from './limits/connection-bounds.ts'
import { allowOrigins } from './http/cors.ts'
import { gatePages, PageGate } from './http/page-gate.ts'
import type { PageBounds } from './http/page-gate.ts'
import type { RateLimiter } from './limits/rate-limiter.ts'
import { limitRates, Rates } from './limits/rate-limits.ts'
import { unpackBodies } from './http/request-encoding.ts'
import { secureHeaders } from './http/secure-headers.ts'
import type { SecuritySettings } from './config/security-keys.ts'
import { SlowReaders, watchReaders } from './http/slow-readers.ts'

export interface ProtectionOptions {
  readonly settings: SecuritySettings
  readonly limiter: RateLimiter
  readonly clock: Clock
  readonly log: Log
  /** No token is needed, because only this machine can call: then there are no limits either. */
  readonly isOpen: boolean
  readonly admission: Admission
  readonly pages: PageBounds
  /** Whether the process has other things to do than long pages. */
  readonly isBusy: () => boolean
}

/** What those need who answer requests by a way of their own. */
export interface Protection {
  /** Absent where nothing is limited. */
  readonly rates: Rates | undefined
  readonly readers: SlowReaders
  /** The word of some proxies about callers is taken. */
  readonly trustsProxies: boolean
}

/**
 * What stands between the network and the routes, in the order in which a request meets it. To be called before anything
 * that refuses, so that refusals too have the headers.
 */
export function protectRoutes(app: FastifyInstance, options: ProtectionOptions): Protection {
  const { settings, limiter, clock, log, isOpen } = options
  secureHeaders(app)
  allowOrigins(app, settings.corsOrigins)
  const rates = isOpen ? undefined : new Rates({ settings, limiter, clock })
  if (rates !== undefined) limitRates(app, rates)
  admitBodies(app, options.admission)
  unpackBodies(app)
  if (settings.compressionEnabled) compressAnswers(app, { minBytes: settings.compressionMinBytes, log })
  const { unreadBytesMax } = options.pages
  const readers = new SlowReaders({ bytesMax: unreadBytesMax })
  watchReaders(app, readers)
  gatePages(app, new PageGate(options.pages, readers, options.isBusy))
  const proxies = trustedProxies(settings.trustProxy)
  boundConnections(app.server, {
    perAddressMax: settings.connectionsPerAddressMax,
    proxies,
    isPlain: !(app.server instanceof TlsServer),
    log,
  })
  return { rates, readers, trustsProxies: proxies !== false }
}

/** `true` stands for proxies on the own machine and in private networks. */
export function trustedProxies(setting: string): string | false {
  const text = setting.trim().toLowerCase()
  if (text === '' || text === 'false') return false
  return text === 'true' ? 'loopback, linklocal, uniquelocal' : text
}
