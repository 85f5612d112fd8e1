import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

const MAIN = join(import.meta.dirname, '../../apps/cli/dist/main.js')

/** An empty directory, as after a fresh clone. */
let folder = ''
let running: Demo[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'impresario-demo-'))
  running = []
})

afterEach(async () => {
  for (const demo of running) await demo.kill()
  await rm(folder, { recursive: true, force: true })
})

/** `impresario dev` in a separate process, as `npm start` runs it. */
class Demo {
  readonly #child
  readonly #closed: Promise<number | null>
  output = ''
  #listeners: (() => void)[] = []

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.#child = spawn(process.execPath, [MAIN, 'dev', ...args], {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const hear = (text: string): void => {
      this.output += text
      for (const listener of this.#listeners) listener()
    }
    this.#child.stdout.setEncoding('utf8').on('data', hear)
    this.#child.stderr.setEncoding('utf8').on('data', hear)
    this.#closed = new Promise((resolve) => this.#child.once('close', resolve))
    running.push(this)
  }

  /** The first match of the pattern in the output, as soon as it appears. */
  async says(pattern: RegExp): Promise<string> {
    const ended = this.#closed.then((code) => {
      throw new Error(`The demo ended with ${code} and never said ${pattern}:\n${this.output}`)
    })
    const found = new Promise<string>((resolve) => {
      const look = (): void => {
        const match = pattern.exec(this.output)
        if (match !== null) resolve(match[1] ?? match[0])
      }
      this.#listeners = [look]
      look()
    })
    return Promise.race([found, ended])
  }

  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM')
    return this.#closed
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#closed
  }
}

interface JobSummary {
  readonly id: string
  readonly blueprint_name: string
  readonly status: string
  readonly result?: { readonly page?: string; readonly video?: string }
}

async function listJobs(demo: Demo): Promise<readonly JobSummary[]> {
  const address = await demo.says(/address +(\S+)/)
  const token = await demo.says(/client token +(\S+)/)
  const response = await fetch(`${address}/api/v1/jobs`, { headers: { 'x-client-token': token } })
  expect(response.status).toBe(200)
  return (await response.json()) as readonly JobSummary[]
}

const ends = /Try it in a second terminal/

test('[M-01, E-07] one command brings everything up, runs a real job and then answers', async () => {
  const demo = new Demo(['--port', '0', '--approve-after', '0'])
  // A link that signs in, to the page of the job while it runs.
  expect(await demo.says(/Watch it: (\S+)/)).toMatch(/\/dashboard\/jobs\/[\w-]+#code=[\w.-]+$/)
  await demo.says(ends)
  // The story: what was done where, and why there.
  expect(demo.output).toMatch(/shoot +4 branches: media\.shoot/)
  expect(demo.output).toContain('media.transcode   → gpu-cheap  (cheapest of 3, $0.02/s)')
  expect(demo.output).toMatch(/impresario jobs approve \S+/)
  expect(demo.output).toMatch(/published +✓ finished/)
  // Quiet: nothing but the story.
  expect(demo.output).not.toMatch(/"level"|WARN/i)

  const jobs = await listJobs(demo)
  const films = jobs.filter(({ blueprint_name: name }) => name !== 'document')
  expect(films.map(({ blueprint_name: name, status }) => `${name} ${status}`).toSorted()).toEqual([
    'catalogue_video finished',
    'publish_video finished',
  ])
  // The work was real.
  const { result } = jobs.find((job) => job.blueprint_name === 'publish_video') ?? {}
  const video = await readFile(join(folder, 'impresario-data/demo', result?.video ?? ''))
  expect(video.subarray(1, 4).toString('latin1')).toBe('PNG')
  expect(video.toString('latin1')).toContain('acTL')
  expect(await readFile(join(folder, 'impresario-data/demo', result?.page ?? ''), 'utf8')).toContain('First light')
  expect(await demo.stop()).toBe(0)
})

test('[L-04] the demo indexes documents in two languages, and finds words in other forms than they stand there', async () => {
  const demo = new Demo(['--port', '0', '--approve-after', '0'])
  await demo.says(ends)
  expect(demo.output).toMatch(/договора\n +договор-аренды\.md/)
  expect(demo.output).toMatch(/delivering\n +\S+ .*deliver/)
  // As a user: a new file is found without a restart.
  const address = await demo.says(/address +(\S+)/)
  const token = await demo.says(/client token +(\S+)/)
  await writeFile(join(folder, 'impresario-data/demo/documents/заметка.txt'), 'Новые телескопы прибыли.')
  await expect
    .poll(
      async () => {
        const query = new URLSearchParams({ q: 'телескопом' })
        const response = await fetch(`${address}/api/v1/documents?${query}`, { headers: { 'x-client-token': token } })
        return (await response.text()).includes('заметка.txt')
      },
      { timeout: 60_000 },
    )
    .toBe(true)
  expect(await demo.stop()).toBe(0)
})

test('[M-01] the second start keeps the history and the token, and waits for a person who asked for it', async () => {
  const first = new Demo(['--port', '0', '--approve-after', '0'])
  await first.says(ends)
  const token = await first.says(/client token +(\S+)/)
  expect(await first.stop()).toBe(0)

  const second = new Demo(['--port', '0', '--interactive'])
  const command = await second.says(/impresario (jobs approve \S+ \S+)/)
  expect(await second.says(/client token +(\S+)/)).toBe(token)
  expect((await listJobs(second)).filter(({ status }) => status === 'waiting_for_human')).toHaveLength(1)
  // As the demo tells the user, in a second terminal: the address and the token are found automatically.
  const approval = spawn(process.execPath, [MAIN, ...command.split(' ')], { cwd: folder, stdio: 'ignore' })
  expect(await new Promise((resolve) => approval.once('close', resolve))).toBe(0)
  await second.says(ends)
  const finished = (await listJobs(second)).filter(({ status }) => status === 'finished')
  expect(finished.filter((job) => job.blueprint_name === 'publish_video')).toHaveLength(2)
  expect(await second.stop()).toBe(0)
})

test('[M-01] a port that is in use is told, and the next free one is taken', async () => {
  const other = createServer()
  const port = await new Promise<number>((resolve) => {
    other.listen(0, '127.0.0.1', () => resolve((other.address() as { readonly port: number }).port))
  })
  try {
    const demo = new Demo(['--port', String(port), '--approve-after', '0'])
    await demo.says(new RegExp(`Port ${port} is in use`))
    expect(Number(await demo.says(/address +http:\/\/127\.0\.0\.1:(\d+)/))).toBeGreaterThan(port)
    await demo.says(ends)
    expect(await demo.stop()).toBe(0)
  } finally {
    other.close()
  }
})

test('[M-01] the log is there for those who ask for it', async () => {
  const demo = new Demo(['--port', '0', '--approve-after', '0'], { LOG_LEVEL: 'info', LOG_FORMAT: 'json' })
  await demo.says(ends)
  const line = demo.output.split('\n').find((text) => text.includes('"listening"')) ?? '{}'
  expect(JSON.parse(line)).toMatchObject({ level: 'info', msg: 'listening' })
  expect(await demo.stop()).toBe(0)
})
