import { createHash, timingSafeEqual } from 'node:crypto'

/** Tokens are kept as hashes only: who reads the memory or the log of this process cannot use them. */
export type TokenHash = Buffer

export function hashToken(token: string): TokenHash {
  return createHash('sha256').update(token).digest()
}

/**
 * The one way in which secrets are compared. Both sides are hashed first unless they are hashes already, so that they are
 * always of equal length, and the time it takes tells neither how long the right one is nor how much of a guess is right.
 */
export function sameSecret(given: string | TokenHash, expected: string | TokenHash): boolean {
  return timingSafeEqual(hashed(given), hashed(expected))
}

function hashed(secret: string | TokenHash): TokenHash {
  return typeof secret === 'string' || secret.length !== HASH_BYTES
    ? createHash('sha256').update(secret).digest()
    : secret
}

const HASH_BYTES = 32
