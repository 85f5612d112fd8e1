import { statSync } from 'node:fs'
import { ImpresarioError } from '@impresario/protocol'

/** A file, and what distinguishes it from another file that replaces it. */
export type FileIdentity = readonly [path: string, identity: string]

export const FILES_GONE =
  'The files of the storage were deleted or replaced while they were in use. Nothing more is written or acknowledged.'

export function fileIdentity(path: string): FileIdentity {
  const { dev, ino } = statSync(path, { bigint: true })
  return [path, `${dev}:${ino}`]
}

/** Contains no file name, because clients read it too. */
export function filesGone(): ImpresarioError {
  return new ImpresarioError('STORAGE_UNAVAILABLE', FILES_GONE, { details: { reason: 'files_gone' } })
}
