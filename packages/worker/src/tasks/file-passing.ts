import { isAbsolute } from 'node:path'
import { isJsonObject, type JsonObject } from '@impresario/protocol'
import { InvalidInputError } from './failure.ts'
import type { Ending } from './handler.ts'
import type { LocalFiles } from './worker-files.ts'

const ADDRESS = 's3://'
/** An address of an orchestrator's own files. Others are left as they are: a handler may know what to do with them. */
const OURS = /^s3:\/\/[^/]+\/jobs\/[^/]+\/./

/** Whether any text in it is the address of a file. */
export function hasAddresses(value: unknown): boolean {
  if (typeof value === 'string') return value.startsWith(ADDRESS) && OURS.test(value)
  if (Array.isArray(value)) return value.some(hasAddresses)
  return isJsonObject(value) && Object.values(value).some(hasAddresses)
}

/** Copies the files that the params name, and puts their local paths there instead. */
export async function paramsWithPaths(params: JsonObject, files: LocalFiles): Promise<JsonObject> {
  const replaced = await replaceTexts(params, async (text) => {
    if (!OURS.test(text)) return text
    return text.endsWith('/') ? files.downloadFolder(text) : files.download(text)
  })
  if (!isJsonObject(replaced)) throw new InvalidInputError('The params are no object.')
  return replaced
}

/** Keeps the files that the result names with the job, and puts their addresses there instead. */
export async function endingWithAddresses(ending: Ending, files: LocalFiles): Promise<Ending> {
  const root = await files.directory()
  const isOurs = (text: string): boolean => isAbsolute(text) && text.startsWith(root)
  const data = await replaceTexts(ending.data, async (text) => (isOurs(text) ? files.keep(text) : text))
  return { ...ending, data }
}

async function replaceTexts(value: unknown, replace: (text: string) => Promise<string>): Promise<unknown> {
  if (typeof value === 'string') return replace(value)
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (const item of value) items.push(await replaceTexts(item, replace))
    return items
  }
  if (!isPlain(value)) return value
  const entries: [string, unknown][] = []
  for (const [key, item] of Object.entries(value)) entries.push([key, await replaceTexts(item, replace)])
  return Object.fromEntries(entries)
}

/** Numbers that a double would alter are objects too, and stay as they are. */
function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
