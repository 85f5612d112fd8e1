import type { ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { RUN_DIRECTORY } from '../servers/run-directory.ts'
import { startServer } from './server-process.ts'

/*
 * A large file up and down through a server of its own process, and how its memory grows meanwhile. Linux only.
 *
 *   npm run bench:files -- [--store local|swift] [--gb 5]
 */

const GROWTH_MAX_MB = 40
const MB = 1_000_000

interface Figures {
  readonly mb: number
  readonly seconds: number
  readonly baselineMb: number
  readonly peakMb: number
}

const { values } = parseArgs({
  options: { store: { type: 'string', default: 'local' }, gb: { type: 'string', default: '5' } },
})
const directory = mkdtempSync(join(tmpdir(), 'impresario-bench-files-'))
// A file of this size belongs on a disk and not into memory.
process.env[RUN_DIRECTORY] = directory
try {
  process.exitCode = await main(values.store, Number(values.gb))
} finally {
  rmSync(directory, { recursive: true, force: true })
}

async function main(store: string, gb: number): Promise<number> {
  const { startSwift } = await import('../servers/swift-server.ts')
  const swift = store === 'swift' ? await startSwift() : undefined
  if (swift !== undefined) await makeBucket(swift)
  const env = {
    FILES_DIR: join(directory, 'files'),
    ...(swift === undefined
      ? {}
      : { S3_ENDPOINT_URL: swift.endpoint, S3_ACCESS_KEY: swift.accessKey, S3_SECRET_KEY: swift.secretKey }),
  }
  const { child, address } = await startServer({ directory, env })
  try {
    const path = await newFile(address)
    // What is loaded with the first file is not growth.
    for (let round = 0; round < 3; round += 1) await carry(address, path, 64 * MB)
    const baselineMb = rssMb(child)
    const figures = await measured(child, baselineMb, async () => carry(address, path, gb * 1_000 * MB))
    const growth = figures.peakMb - baselineMb
    print(`${store}: ${gb} GB up and down in ${figures.seconds.toFixed(0)} s`)
    print(
      `  memory before ${baselineMb.toFixed(0)} MB, at most ${figures.peakMb.toFixed(0)} MB: ${growth.toFixed(0)} MB more`,
    )
    return growth < GROWTH_MAX_MB ? 0 : 1
  } finally {
    child.kill('SIGTERM')
    await once(child, 'exit')
    await swift?.remove()
  }
}

/** Up, then down, each compared by its checksum. */
async function carry(address: string, path: string, bytes: number): Promise<void> {
  const began = performance.now()
  const sent = createHash('sha256')
  const up = await call(address, 'PUT', path, { bytes, content: pieces(bytes, sent) })
  const reply = JSON.parse(await text(up)) as { readonly sha256?: string; readonly error?: string }
  const expected = sent.digest('hex')
  if (reply.sha256 !== expected) throw new Error(`The upload was answered with ${JSON.stringify(reply)}`)
  const turned = performance.now()
  const received = createHash('sha256')
  const down = await call(address, 'GET', path)
  for await (const piece of down) received.update(piece as Buffer)
  if (received.digest('hex') !== expected) throw new Error('What came back is another file')
  const speed = (ms: number): string => `${(bytes / MB / (ms / 1_000)).toFixed(0)} MB/s`
  print(`  ${bytes / MB} MB: up ${speed(turned - began)}, down ${speed(performance.now() - turned)}`)
}

async function* pieces(bytes: number, hash: ReturnType<typeof createHash>): AsyncGenerator<Buffer> {
  const block = randomBytes(262_144)
  for (let left = bytes; left > 0; left -= block.byteLength) {
    block.writeDoubleLE(left, 0)
    // A copy: what is handed on may still be on its way when the block changes.
    const piece = Buffer.from(block.subarray(0, Math.min(left, block.byteLength)))
    hash.update(piece)
    yield await Promise.resolve(piece)
  }
}

async function measured(
  child: ChildProcess,
  baselineMb: number,
  work: () => Promise<void>,
): Promise<Omit<Figures, 'mb'>> {
  let peakMb = 0
  const timer = setInterval(() => {
    peakMb = Math.max(peakMb, rssMb(child))
  }, 50)
  const began = performance.now()
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  return { seconds: (performance.now() - began) / 1_000, baselineMb, peakMb }
}

function rssMb({ pid }: ChildProcess): number {
  const [, kb = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid ?? 0}/status`, 'utf8')) ?? []
  return (Number(kb) * 1_024) / MB
}

async function newFile(address: string): Promise<string> {
  const body = JSON.stringify({ blueprint: 'patient' })
  const answer = await fetch(`${address}/api/v1/jobs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  const { job_id: jobId } = (await answer.json()) as { readonly job_id: string }
  return `/api/v1/jobs/${jobId}/files/content/large.bin`
}

async function makeBucket(swift: {
  endpoint: string
  accessKey: string
  secretKey: string
  region: string
}): Promise<void> {
  const { CreateBucketCommand, S3Client } = await import('@aws-sdk/client-s3')
  const client = new S3Client({
    endpoint: swift.endpoint,
    region: swift.region,
    forcePathStyle: true,
    credentials: { accessKeyId: swift.accessKey, secretAccessKey: swift.secretKey },
  })
  await client.send(new CreateBucketCommand({ Bucket: 'impresario-files' }))
  client.destroy()
}

async function call(
  address: string,
  method: 'GET' | 'PUT',
  path: string,
  body?: { readonly bytes: number; readonly content: AsyncIterable<Buffer> },
): Promise<IncomingMessage> {
  const headers =
    body === undefined ? {} : { 'content-length': String(body.bytes), 'content-type': 'application/octet-stream' }
  const outgoing = request(`${address}${path}`, { method, headers })
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve)
    outgoing.once('error', reject)
  })
  if (body === undefined) outgoing.end()
  else await pipeline(Readable.from(body.content, { objectMode: false, highWaterMark: 1_048_576 }), outgoing)
  return answered
}

async function text(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of response) parts.push(part as Buffer)
  return Buffer.concat(parts).toString()
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
