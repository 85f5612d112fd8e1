import { hkdfSync, randomBytes } from 'node:crypto'
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { invalid } from './config.ts'
import { secretKeyProblem } from '../runtime/text-checks.ts'

const KEY_BYTES = 32
const FILE = 'secret.key'
const KEY_TEXT = /^[\da-f]{64}$/

/**
 * What this server signs with. From it each purpose gets a key of its own, so that what was signed for one is worth
 * nothing for another.
 */
export class SecretKey {
  readonly #secret: Buffer
  /** It ends with the process, and what was signed with it too. */
  readonly isEphemeral: boolean

  constructor(secret: Buffer, isEphemeral = false) {
    this.#secret = secret
    this.isEphemeral = isEphemeral
  }

  derive(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#secret, '', `impresario/${purpose}`, KEY_BYTES))
  }
}

/**
 * The key of the configuration; else the one that lies beside the embedded storage, made at the first start; else, where
 * nothing is kept, one for this run. Instances that share a storage must be given the same one.
 */
export function loadSecretKey(configured: string, storageDirectory: string | undefined): SecretKey {
  if (configured !== '') {
    const problem = secretKeyProblem(configured)
    if (problem !== undefined) throw invalid(`SECRET_KEY ${problem}`)
    // As the file beside the embedded storage has it, so that its key can be given to instances that share another storage.
    return new SecretKey(KEY_TEXT.test(configured) ? Buffer.from(configured, 'hex') : Buffer.from(configured))
  }
  if (storageDirectory === undefined) return new SecretKey(randomBytes(KEY_BYTES), true)
  return new SecretKey(keptKey(storageDirectory))
}

function keptKey(directory: string): Buffer {
  const path = join(directory, FILE)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  try {
    return newKey(path)
  } catch (error) {
    if (!isTaken(error)) throw invalid(`${path} cannot be written. Set SECRET_KEY instead.`, error)
  }
  const text = readFileSync(path, 'utf8').trim()
  if (!KEY_TEXT.test(text)) {
    throw invalid(`${path} does not hold a key. Restore it from a backup, or delete it: links made before then fail.`)
  }
  // A copied file may be readable by others.
  chmodSync(path, 0o600)
  return Buffer.from(text, 'hex')
}

/** Written whole and on disk before anything is signed with it; never over one that is there. */
function newKey(path: string): Buffer {
  const key = randomBytes(KEY_BYTES)
  const file = openSync(path, 'wx', 0o600)
  try {
    writeSync(file, `${key.toString('hex')}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  return key
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EEXIST'
}
