import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { JobFile, JobHandle } from '@impresario/client'
import { EXIT, usage } from './failure.ts'
import { jobIdOf } from './job-prefix.ts'
import { printJson } from './screen.ts'
import { done, withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { table } from './table.ts'
import type { Column } from './table.ts'
import { localTime } from './time.ts'

interface PutOptions extends GlobalOptions {
  readonly name?: string
}
interface GetOptions extends GlobalOptions {
  readonly output?: string
  readonly continue?: boolean
}
interface LinkOptions extends GlobalOptions {
  readonly for?: number
}

type Files = JobHandle['files']

export function listFiles(given: string, prefix: string | undefined, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const files = await client.job(await jobIdOf(client, given)).files.list(prefix)
    if (screen.isJson) printJson(screen, files)
    else if (files.length === 0) screen.out('The job has no files.')
    else {
      const columns: readonly Column<JobFile>[] = [
        { title: 'file', cell: ({ name }) => name },
        { title: 'size', cell: ({ bytes }) => shownBytes(bytes), align: 'right' },
        { title: 'written', cell: ({ modifiedAt: at }) => localTime(at) },
      ]
      screen.out(table(screen, files, columns))
    }
    return EXIT.ok
  })
}

export function putFile(given: string, path: string, options: PutOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const stats = await stat(path).catch(() => undefined)
    if (stats?.isFile() !== true) throw usage(`There is no file "${path}".`, 'Name a file on this machine.')
    const { files } = client.job(await jobIdOf(client, given))
    const { name, bytes, uri } = await files.upload(options.name ?? basename(path), bodyOf(path))
    if (screen.isJson) printJson(screen, { name, bytes, uri })
    else done(screen, `Uploaded ${name} (${shownBytes(bytes)}). In task params, use ${uri}`)
    return EXIT.ok
  })
}

export function getFile(given: string, name: string, options: GetOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { files } = client.job(await jobIdOf(client, given))
    const output = options.output ?? basename(name)
    if (output === '-') {
      await pipeline(Readable.fromWeb(streamOf((await files.download(name)).body)), process.stdout, { end: false })
      return EXIT.ok
    }
    const bytes = await save(files, name, output, options.continue === true)
    return done(screen, `Saved ${name} to ${output} (${shownBytes(bytes)}).`)
  })
}

export function linkFile(given: string, name: string, options: LinkOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const { files } = client.job(await jobIdOf(client, given))
    const link = await files.link(name, options.for === undefined ? {} : { expiresMs: options.for })
    if (screen.isJson) printJson(screen, link)
    else screen.out(link.url)
    return EXIT.ok
  })
}

export function deleteFile(given: string, name: string, options: GlobalOptions): Promise<number> {
  return withServer(options, async ({ client, screen }) => {
    const jobId = await jobIdOf(client, given)
    await client.job(jobId).files.delete(name)
    return done(screen, `${name} is deleted.`)
  })
}

/** With `--continue` only what is missing is asked for. */
async function save(files: Files, name: string, output: string, isContinued: boolean): Promise<number> {
  const from = isContinued ? ((await stat(output).catch(() => undefined))?.size ?? 0) : 0
  const [known] = from === 0 ? [] : (await files.list(name)).filter((file) => file.name === name)
  if (known !== undefined && known.bytes === from) return from
  const download = await files.download(name, { from, etag: known?.etag })
  const flags = download.from === 0 ? 'w' : 'a'
  await pipeline(Readable.fromWeb(streamOf(download.body)), createWriteStream(output, { flags }))
  return download.bytes
}

/** Boundary: Node's streams of the web and those of the types of browsers are the same. */
function streamOf(body: ReadableStream<Uint8Array>): Parameters<typeof Readable.fromWeb>[0] {
  return body as Parameters<typeof Readable.fromWeb>[0]
}

/** Boundary: the same in the other direction. */
function bodyOf(path: string): ReadableStream<Uint8Array> {
  return Readable.toWeb(createReadStream(path, { highWaterMark: 262_144 })) as ReadableStream<Uint8Array>
}

function shownBytes(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB']
  const power = bytes < 1_000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), units.length - 1)
  const value = bytes / 1_000 ** power
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`
}
