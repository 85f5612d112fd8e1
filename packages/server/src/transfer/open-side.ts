import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Transferable } from '@impresario/core'
import { ImpresarioError } from '@impresario/protocol'
import { openTransferableFile } from '@impresario/storage-embedded'
import { postgresStorage, redisStorage } from '../orchestrator/drivers.ts'
import { shownAddress } from '../orchestrator/storage.ts'
import { directoryOf } from '../config/storage-choice.ts'

const FORMS = 'file:<directory>, redis://host or postgres://user@host/database'

/** Opens the storage that the address names as a transfer sees it; nothing if it is not there and is not to be made. */
export async function openTransferable(url: string, mayCreate: boolean): Promise<Transferable | undefined> {
  const scheme = /^[a-z]+(?=:)/i.exec(url)?.[0].toLowerCase() ?? ''
  if (scheme === 'file') {
    const directory = directoryOf(url) ?? ''
    if (directory === '') throw invalid('The address names no directory. Write it as file:./impresario-data.')
    return openTransferableFile({ directory, mayCreate })
  }
  if (['postgres', 'postgresql'].includes(scheme)) {
    const { openTransferableSchema } = await postgresStorage()
    return openTransferableSchema({ url, mayCreate })
  }
  if (['redis', 'rediss'].includes(scheme)) {
    const { openTransferableNamespace } = await redisStorage()
    return openTransferableNamespace({ url, mayCreate })
  }
  if (scheme === 'memory') throw invalid('A memory storage ends with its process, so there is nothing to transfer.')
  // Not repeated: a password may be in it.
  throw invalid(`An address is invalid. Use ${FORMS}.`)
}

/** For messages: where a storage is, and which of several there, without secrets. */
export function nameOf(url: string): string {
  const settings = new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? '')
  const shown = ['namespace', 'prefix', 'schema', 'shards'].flatMap((name) => {
    const value = settings.get(name)
    return value === null ? [] : [`${name}=${value}`]
  })
  return [shownAddress(url), ...(shown.length === 0 ? [] : [shown.join('&')])].join('?')
}

/** Whether both are the same directory. Other storages find out by their marks. */
export function isSameDirectory(a: string, b: string): boolean {
  const [first, second] = [directoryOf(a), directoryOf(b)]
  if (first === undefined || second === undefined) return false
  return realPath(first) === realPath(second)
}

function realPath(directory: string): string {
  try {
    return realpathSync(directory)
  } catch {
    return resolve(directory)
  }
}

function invalid(message: string): ImpresarioError {
  return new ImpresarioError('INVALID_REQUEST', message)
}
