import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Server as HttpsServer } from 'node:https'
import { createSecureContext, Server as TlsServer } from 'node:tls'
import type { SecureContextOptions } from 'node:tls'
import type { Log } from '@impresario/core'
import { isImpresarioError } from '@impresario/protocol'
import { invalid } from '../config/config.ts'
import type { Settings } from '../config/config.ts'

export interface TlsOptions extends SecureContextOptions {
  readonly minVersion: 'TLSv1.2'
  /** Ask workers for a certificate. */
  readonly requestCert: boolean
  /** End connections without a client certificate, or with one that is not valid. */
  readonly rejectUnauthorized: boolean
}

/** Reads certificate and key, and refuses to start with what cannot work. */
export function loadTls(settings: Settings): TlsOptions | undefined {
  const { tlsEnabled, tlsCertPath, tlsKeyPath, tlsCaPath, tlsRequireClientCert, workerAuthMode } = settings
  if (!tlsEnabled) {
    if (workerAuthMode !== 'mtls-only') return undefined
    throw invalid('WORKER_AUTH_MODE is mtls-only, but TLS_ENABLED is not set: no worker could show a certificate.')
  }
  if (tlsCaPath === '' && (tlsRequireClientCert || workerAuthMode === 'mtls-only')) {
    throw invalid('TLS_CA_PATH is missing: without it no certificate of a worker can be checked.')
  }
  const material: SecureContextOptions = {
    cert: read('TLS_CERT_PATH', tlsCertPath),
    key: read('TLS_KEY_PATH', tlsKeyPath),
    ...(tlsCaPath === '' ? {} : { ca: read('TLS_CA_PATH', tlsCaPath) }),
  }
  try {
    createSecureContext(material)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw invalid(`The files of TLS_CERT_PATH, TLS_KEY_PATH and TLS_CA_PATH do not go together: ${why}`, error)
  }
  return {
    ...material,
    minVersion: 'TLSv1.2',
    requestCert: tlsCaPath !== '',
    rejectUnauthorized: tlsRequireClientCert,
  }
}

export type TlsReloaded =
  | { readonly status: 'reloaded'; readonly validTo: string }
  | { readonly status: 'refused'; readonly error: string }
  | { readonly status: 'off' }

/**
 * Reloads the files and uses them for every new connection; those that are open stay as they are. Files that
 * cannot work change nothing. What came of it is in the log too.
 */
export function reloadTls(server: object, settings: Settings, log: Log): TlsReloaded {
  try {
    const options = loadTls(settings)
    if (options === undefined || !isTlsServer(server)) return { status: 'off' }
    server.setSecureContext(options)
    const { validTo } = new X509Certificate(read('TLS_CERT_PATH', settings.tlsCertPath))
    log.info('certificate reloaded', { valid_to: validTo })
    return { status: 'reloaded', validTo }
  } catch (error) {
    if (!isImpresarioError(error)) throw error
    log.error('the certificate was not reloaded; the old one stays', { error: error.message })
    return { status: 'refused', error: error.message }
  }
}

function isTlsServer(server: object): server is HttpsServer {
  return server instanceof TlsServer
}

function read(key: string, path: string): Buffer {
  if (path === '') throw invalid(`TLS_ENABLED is set, but ${key} is missing.`)
  try {
    return readFileSync(path)
  } catch (error) {
    throw invalid(`${key}: ${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`, error)
  }
}
