import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { Vault } from '@impresario/automations'

const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16
const SECRET_BYTES = 24

/** Seals texts with AES-256-GCM. The key is derived from the server's own, which is not in the storage. */
export function createVault(key: Buffer): Vault {
  return {
    seal: (text, purpose) => {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv(CIPHER, key.subarray(0, 32), iv).setAAD(Buffer.from(purpose))
      const data = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return `v1.${Buffer.concat([iv, cipher.getAuthTag(), data]).toString('base64url')}`
    },
    open: (sealed, purpose) => {
      const whole = Buffer.from(sealed.slice('v1.'.length), 'base64url')
      if (!sealed.startsWith('v1.') || whole.length < IV_BYTES + TAG_BYTES) return undefined
      const [iv, tag] = [whole.subarray(0, IV_BYTES), whole.subarray(IV_BYTES, IV_BYTES + TAG_BYTES)]
      try {
        const opened = createDecipheriv(CIPHER, key.subarray(0, 32), iv).setAAD(Buffer.from(purpose)).setAuthTag(tag)
        return opened.update(whole.subarray(IV_BYTES + TAG_BYTES), undefined, 'utf8') + opened.final('utf8')
      } catch {
        return undefined
      }
    },
    secret: () => randomBytes(SECRET_BYTES).toString('base64url'),
  }
}
