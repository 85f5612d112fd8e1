import { constants } from 'node:fs'
import { access, lstat, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { ImpresarioError } from '@impresario/protocol'
import { mayBeDocument } from '../parsing/kind.ts'
import { nativePath, shownPath } from '../paths.ts'
import type { FileFacts } from './priority.ts'

/** The first step for every file: it exists, is a regular file, can be read, is not too large, and may be a document. */
export async function validateFile(path: string, maxBytes: number, readsPictures = false): Promise<FileFacts> {
  const native = nativePath(path)
  const name = basename(shownPath(path))
  const facts = await stat(native).catch((error: unknown) => {
    throw refused(`${name} ${codeOf(error) === 'ENOENT' ? 'does not exist' : `cannot be read (${codeOf(error)})`}.`)
  })
  if (!facts.isFile()) throw refused(`${name} is no regular file.`)
  if (facts.size > maxBytes) {
    throw refused(`${name} has ${facts.size} bytes, and the largest size is ${maxBytes} (engine.limits.max_file_size).`)
  }
  if (!mayBeDocument(name, readsPictures)) throw refused(`${name} is of a kind that has no text.`)
  await access(native, constants.R_OK).catch(() => {
    throw refused(`${name} cannot be read: permission denied.`)
  })
  return { size: facts.size, mtimeMs: facts.mtimeMs }
}

export async function isDirectory(path: string): Promise<boolean> {
  return lstat(nativePath(path)).then(
    (facts) => facts.isDirectory(),
    () => false,
  )
}

function refused(reason: string): ImpresarioError {
  return new ImpresarioError('INPUT_REFUSED', `file validation failed: ${reason}`)
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
}
