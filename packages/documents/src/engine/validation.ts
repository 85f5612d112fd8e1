import { constants } from 'node:fs'
import { access, lstat, realpath, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { ImpresarioError } from '@impresario/protocol'
import { mayBeDocument } from '../parsing/kind.ts'
import { nativePath, pathOf, shownPath } from '../paths.ts'
import type { FileFacts } from './priority.ts'

/** The first step for every file: it exists, is a regular file, can be read, is not too large, and may be a document. */
export async function validateFile(path: string, maxBytes: number, readsPictures = false): Promise<FileFacts> {
  const native = nativePath(path)
  const name = basename(shownPath(path))
  const facts = await lstat(native).catch((error: unknown) => {
    throw refused(`${name} ${codeOf(error) === 'ENOENT' ? 'does not exist' : `cannot be read (${codeOf(error)})`}.`)
  })
  if (facts.isSymbolicLink()) throw refused(`${name} is a link, and links are not followed. Name the file itself.`)
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

/** A link that is named by hand is followed; those that are found in folders are not. */
export async function isDirectory(path: string): Promise<boolean> {
  return stat(nativePath(path)).then(
    (facts) => facts.isDirectory(),
    () => false,
  )
}

/** The file that a link means, if it is one. */
export async function withoutLink(path: string): Promise<string> {
  const isLink = await lstat(nativePath(path)).then(
    (facts) => facts.isSymbolicLink(),
    () => false,
  )
  return isLink ? realpath(nativePath(path), 'buffer').then(pathOf, () => path) : path
}

function refused(reason: string): ImpresarioError {
  return new ImpresarioError('INPUT_REFUSED', `file validation failed: ${reason}`)
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
}
