/** The cost of the machine itself, measured in the same run: our figures are meaningful only beside these. */
import { fork } from 'node:child_process'
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { now, percentile, sleep } from './measure.ts'

const ROUNDS = 200
/** The pause between two attempts: an idle machine responds more slowly than a busy one. */
const GAP_MS = 10

/** A round trip to a bare HTTP server in another process. */
export async function httpFloorMs(): Promise<number> {
  const child = fork(fileURLToPath(new URL('floor-server.js', import.meta.url)))
  const port = await new Promise<number>((resolve) => {
    child.once('message', (message) => resolve(Number(message)))
  })
  const agent = new Agent({ keepAlive: true })
  const request = (): Promise<void> =>
    new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port, agent }, (response) => {
        response.resume()
        response.once('end', resolve)
      }).once('error', reject)
    })
  const spans = await spansOf(request)
  agent.destroy()
  child.kill()
  return percentile(spans, 50)
}

/** 600 bytes written and on disk. */
export async function syncFloorMs(): Promise<number> {
  const directory = mkdtempSync(join(process.env['BENCH_TMP'] ?? tmpdir(), 'impresario-floor-'))
  const file = openSync(join(directory, 'log'), 'w')
  const text = 'x'.repeat(600)
  const spans = await spansOf(() => {
    writeSync(file, text)
    fdatasyncSync(file)
    return Promise.resolve()
  })
  closeSync(file)
  rmSync(directory, { recursive: true })
  return percentile(spans, 50)
}

async function spansOf(work: () => Promise<void>): Promise<number[]> {
  const spans: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const begin = now()
    await work()
    spans.push(now() - begin)
    await sleep(GAP_MS)
  }
  return spans
}
