import { randomBytes, scrypt } from 'node:crypto'
import { hashToken, sameSecret } from '../runtime/secret.ts'
import type { AgentToken } from './agent-record.ts'

const HASH_BYTES = 32

/** A password is not as random as a token of ours: who reads its hash must not find it by trying. */
export async function saltedHash(password: string): Promise<{ readonly hash: string; readonly salt: string }> {
  const salt = randomBytes(16).toString('hex')
  return { hash: (await derived(password, salt)).toString('hex'), salt }
}

export async function isSecretOf({ hash, salt }: AgentToken, secret: string): Promise<boolean> {
  const given = salt === undefined ? hashToken(secret) : await derived(secret, salt)
  return sameSecret(given, Buffer.from(hash, 'hex'))
}

function derived(password: string, salt: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password, salt, HASH_BYTES, (error, key) => {
      if (error === null) resolve(key)
      else reject(error)
    })
  })
}
