import { createHash } from 'node:crypto'
import type { Put, Stored } from '@impresario/core'
import type { JsonObject } from '@impresario/protocol'
import { DAY_MS } from '@impresario/protocol'
import { jittered } from './schedule.ts'

/**
 * How a receiver has fared, for one client and one address without its query.
 *
 * `closed` → `open` after `FAILURES_MAX` failures in a row: nothing is sent until `waitUntil`, and what comes meanwhile waits
 * without using up its attempts. Then one message is the probe; all others wait for what becomes of it. If it arrives,
 * the endpoint is `closed`; if not, the wait doubles up to an hour. Whatever the circuit, an endpoint is disabled when it
 * says that it is gone (410), or when for three days nothing has arrived; its messages then fail at once. A person has to
 * enable it again, or a redelivery that arrives does.
 */
export type Endpoint = {
  readonly clientId: string
  readonly address: string
  readonly createdAt: number
  /** How often the secret was replaced, and until when the one before is still used beside it. */
  readonly rotation: number
  readonly oldSecretUntil: number | null
  /** In a row. */
  readonly failures: number
  readonly failingSince: number | null
  readonly lastSuccessAt: number | null
  readonly lastFailureAt: number | null
  readonly lastError: string | null
  readonly circuit: 'closed' | 'open'
  /** Probes in a row that failed. */
  readonly probesFailed: number
  readonly probe: { readonly messageId: string; readonly until: number } | null
  readonly waitUntil: number | null
  readonly disabled: { readonly at: number; readonly reason: 'gone' | 'failing' } | null
}

const FAILURES_MAX = 5
const PROBE_MS = 30_000
const PROBE_MS_MAX = 3_600_000
const FAILING_MS_MAX = 3 * DAY_MS

/** What a receiver asks for by Retry-After holds up all its messages, but no longer than this. */
const PAUSE_MS_MAX = 3_600_000

/** How long a probe counts as under way if its outcome is not reported: longer than any attempt can last. */
const PROBE_LIFE_MS = 30_000

/** A success is written so often while nothing changes; each is in the log of deliveries anyway. */
const SUCCESS_NOTE_MS = 60_000

/** An endpoint without messages is forgotten, unless it holds a setting that a person made. */
const ENDPOINT_EXPIRES_MS = 90 * DAY_MS

/** So is one that was switched off because it failed: whoever sends to it after a year finds out again. */
const DISABLED_EXPIRES_MS = 366 * DAY_MS

/** How long a replaced secret is still used beside the new one. */
export const SECRET_OVERLAP_MS = DAY_MS

/** The address of the endpoint: a query may differ from job to job, and belongs to the message. */
export function endpointAddress(url: string): string {
  if (!URL.canParse(url)) return url
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

export function endpointId(clientId: string, address: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([clientId, address]))
    .digest('hex')
  return `ep_${hash.slice(0, 32)}`
}

export function newEndpoint(clientId: string, address: string, now: number): Endpoint {
  return {
    clientId,
    address,
    createdAt: now,
    rotation: 0,
    oldSecretUntil: null,
    failures: 0,
    failingSince: null,
    lastSuccessAt: null,
    lastFailureAt: null,
    lastError: null,
    circuit: 'closed',
    probesFailed: 0,
    probe: null,
    waitUntil: null,
    disabled: null,
  }
}

/** The boundary where a record gets its type back. Only this file makes such records. */
export function asEndpoint({ value, version }: Stored<JsonObject>): Stored<Endpoint> {
  return { value: value as unknown as Endpoint, version }
}

export type EndpointStatus = 'active' | 'open' | 'disabled'

function endpointStatus({ disabled, circuit }: Endpoint): EndpointStatus {
  if (disabled !== null) return 'disabled'
  return circuit === 'open' ? 'open' : 'active'
}

export function putEndpoint(value: Endpoint, version: number): Put {
  const { clientId, address, rotation, disabled } = value
  const expiresMs = disabled === null ? ENDPOINT_EXPIRES_MS : DISABLED_EXPIRES_MS
  return {
    kind: 'endpoint',
    id: endpointId(clientId, address),
    value,
    version,
    facets: { owner: clientId, status: endpointStatus(value) },
    ...(rotation === 0 ? { expiresMs } : {}),
  }
}

/** The rotations to sign with, the newest first. */
export function rotationsAt({ rotation, oldSecretUntil }: Endpoint, now: number): readonly number[] {
  return oldSecretUntil !== null && oldSecretUntil > now && rotation > 0 ? [rotation, rotation - 1] : [rotation]
}

export function rotated(endpoint: Endpoint, now: number, overlapMs: number): Endpoint {
  return { ...endpoint, rotation: endpoint.rotation + 1, oldSecretUntil: now + overlapMs }
}

export function enabled(endpoint: Endpoint): Endpoint {
  return { ...endpoint, disabled: null, ...QUIET }
}

const QUIET = {
  failures: 0,
  failingSince: null,
  circuit: 'closed',
  probesFailed: 0,
  probe: null,
  waitUntil: null,
} as const

export type Admission =
  | { readonly type: 'send' }
  | { readonly type: 'probe' }
  | { readonly type: 'wait'; readonly ms: number; readonly spreadMs: number }
  | { readonly type: 'disabled'; readonly reason: 'gone' | 'failing' }

/** Whether a message may be sent now. One that was requested by its id is sent whatever the state. */
export function admit(
  endpoint: Endpoint | undefined,
  { messageId, isForced, now }: { readonly messageId: string; readonly isForced: boolean; readonly now: number },
): Admission {
  if (endpoint === undefined || isForced) return { type: 'send' }
  const { disabled, waitUntil, circuit, probe } = endpoint
  if (disabled !== null) return { type: 'disabled', reason: disabled.reason }
  const isOpen = circuit === 'open'
  if (waitUntil !== null && waitUntil > now) {
    // Spread, so that most of those that wait come back when the probe's fate is known.
    return { type: 'wait', ms: waitUntil - now, spreadMs: isOpen ? probeMs(endpoint) / 4 : 1_000 }
  }
  if (!isOpen) return { type: 'send' }
  if (probe === null || probe.until <= now || probe.messageId === messageId) return { type: 'probe' }
  return { type: 'wait', ms: probe.until - now, spreadMs: 1_000 }
}

function probeMs({ probesFailed }: Endpoint): number {
  return Math.min(PROBE_MS * 2 ** probesFailed, PROBE_MS_MAX)
}

export function probing(endpoint: Endpoint, messageId: string, now: number): Endpoint {
  return { ...endpoint, probe: { messageId, until: now + PROBE_LIFE_MS } }
}

/** `undefined`: there is nothing worth writing. */
export function succeeded(endpoint: Endpoint, now: number): Endpoint | undefined {
  const { failures, circuit, waitUntil, disabled, lastSuccessAt } = endpoint
  const isQuiet = failures === 0 && circuit === 'closed' && waitUntil === null && disabled === null
  if (isQuiet && lastSuccessAt !== null && now - lastSuccessAt < SUCCESS_NOTE_MS) return undefined
  return { ...enabled(endpoint), lastSuccessAt: now }
}

export interface Failure {
  readonly messageId: string
  readonly now: number
  readonly error: string
  /** The receiver said 410. */
  readonly isGone: boolean
  readonly retryAfterMs: number | undefined
  readonly chance: number
}

export function failed(endpoint: Endpoint, failure: Failure): Endpoint {
  const { now, error, isGone, retryAfterMs, chance, messageId } = failure
  const failures = endpoint.failures + 1
  const failingSince = endpoint.failingSince ?? now
  const isFailing = now - failingSince >= FAILING_MS_MAX
  const noted: Endpoint = {
    ...endpoint,
    failures,
    failingSince,
    lastFailureAt: now,
    lastError: error,
    disabled: endpoint.disabled ?? (isGone || isFailing ? { at: now, reason: isGone ? 'gone' : 'failing' } : null),
  }
  const judged = circuitAfter(noted, { now, chance, messageId })
  if (retryAfterMs === undefined) return judged
  const pausedUntil = now + Math.min(retryAfterMs, PAUSE_MS_MAX)
  return { ...judged, waitUntil: Math.max(judged.waitUntil ?? 0, pausedUntil) }
}

function circuitAfter(
  endpoint: Endpoint,
  { now, chance, messageId }: { readonly now: number; readonly chance: number; readonly messageId: string },
): Endpoint {
  const { circuit, failures, probe, probesFailed } = endpoint
  if (circuit === 'closed') {
    if (failures < FAILURES_MAX) return endpoint
    return { ...endpoint, circuit: 'open', probesFailed: 0, probe: null, waitUntil: now + jittered(PROBE_MS, chance) }
  }
  // One that was sent before the circuit opened says nothing new.
  if (probe?.messageId !== messageId) return endpoint
  const next = { ...endpoint, probesFailed: probesFailed + 1, probe: null }
  return { ...next, waitUntil: now + jittered(probeMs(next), chance) }
}
