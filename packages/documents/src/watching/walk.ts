import { opendir } from 'node:fs/promises'
import { nativePath, pathOf } from '../paths.ts'

export interface Found {
  readonly path: string
  readonly isDirectory: boolean
}

/** Folders nest no deeper than this; loops cannot be, because links are not followed. */
const DEPTH_MAX = 200

/**
 * Everything under a folder, folder by folder, in no order. Links are left out: what they point to may be outside. A folder that
 * cannot be read is told and left out.
 */
export async function* walk(
  folder: string,
  isIgnored: (path: string) => boolean,
  onUnreadable: (path: string, error: unknown) => void = () => undefined,
): AsyncGenerator<Found> {
  const waiting: { readonly path: string; readonly depth: number }[] = [{ path: folder, depth: 0 }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    yield { path: next.path, isDirectory: true }
    try {
      for await (const { name, isDirectory, isFile } of entriesOf(next.path)) {
        const path = next.path === '/' ? `/${name}` : `${next.path}/${name}`
        if (isIgnored(path)) continue
        if (isDirectory && next.depth < DEPTH_MAX) waiting.push({ path, depth: next.depth + 1 })
        else if (isFile) yield { path, isDirectory: false }
      }
    } catch (error) {
      onUnreadable(next.path, error)
    }
  }
}

interface Entry {
  readonly name: string
  readonly isDirectory: boolean
  readonly isFile: boolean
}

async function* entriesOf(folder: string): AsyncGenerator<Entry> {
  // Names come as bytes, because they need not be text.
  const directory = await opendir(nativePath(folder), bytesEncoding())
  for await (const entry of directory) {
    yield { name: pathOf(nameBytes(entry)), isDirectory: entry.isDirectory(), isFile: entry.isFile() }
  }
}

/** Boundaries: Node takes this encoding and then gives buffers, which its types do not say. */
function bytesEncoding(): { readonly encoding: BufferEncoding; readonly bufferSize: number } {
  return { encoding: 'buffer' as BufferEncoding, bufferSize: 256 }
}
function nameBytes({ name }: { readonly name: unknown }): Buffer {
  return Buffer.isBuffer(name) ? name : Buffer.from(name as string)
}
