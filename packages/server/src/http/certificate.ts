import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { PeerCertificate } from 'node:tls'

export interface ShownCertificate {
  /** The worker ids that it stands for. */
  readonly names: readonly string[]
  /** Why it does not count. */
  readonly problem?: string
}

const WORKER_ID = /^[A-Za-z0-9_-]+$/

/**
 * The certificate that the other side has shown, if any. Its names are those of its alternative names (DNS or URI) that
 * can be worker ids; of a URI, its last part (`spiffe://example/worker/w1`). Where none can, its common name is taken.
 */
export function certificateOf(socket: Socket): ShownCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined
  const certificate = shown(socket.getPeerCertificate())
  if (certificate === undefined) return undefined
  if (!socket.authorized) return { names: [], problem: `the certificate is not valid (${reasonOf(socket)}).` }
  const names = namesOf(certificate)
  return names.length > 0 ? { names } : { names, problem: 'the certificate names no worker id.' }
}

/** Node gives an empty object where there is none. */
function shown(certificate: Partial<PeerCertificate> | null): Partial<PeerCertificate> | undefined {
  return certificate === null || certificate.subject === undefined ? undefined : certificate
}

/** Node's type says that it is an error; it is the error's code. */
function reasonOf(socket: TLSSocket): string {
  const reason: unknown = socket.authorizationError
  return reason instanceof Error ? reason.message : String(reason)
}

function namesOf({ subjectaltname, subject }: Partial<PeerCertificate>): readonly string[] {
  const names: string[] = []
  for (const [, kind, value] of (subjectaltname ?? '').matchAll(ALTERNATIVE)) {
    const name = kind === 'URI' ? (value?.split(/[/:]/).at(-1) ?? '') : (value ?? '')
    if (WORKER_ID.test(name)) names.push(name)
  }
  if (names.length > 0) return names
  // A subject may have several common names; Node then gives a list.
  const common: unknown = subject?.CN
  return typeof common === 'string' && WORKER_ID.test(common) ? [common] : []
}

/** Node writes odd values as JSON text, in quotes; no worker id needs them. */
const ALTERNATIVE = /(?:^|, )(DNS|URI):([^",]+)(?=,|$)/g
