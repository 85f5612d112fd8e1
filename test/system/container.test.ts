/**
 * Every command of the container file, run in a clean directory with exactly the files that the image would get. If a
 * Docker engine is available, the image itself is also built and started.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const CONTAINERFILE = readFileSync(join(ROOT, 'deploy/Containerfile'), 'utf8')
const BUILD_MS = 900_000

let image = ''
beforeAll(() => {
  image = mkdtempSync(join(tmpdir(), 'impresario-image-'))
})
afterAll(() => rmSync(image, { recursive: true, force: true }))

/** Instructions with their continued lines joined, without comments. */
function instructions(): readonly string[] {
  return CONTAINERFILE.split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .replaceAll(/\s*\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line !== '')
}

/** The commands of the build stage, which run in the directory with the sources. */
function buildCommands(): readonly string[] {
  const lines = instructions()
  const second = lines.findLastIndex((line) => line.startsWith('FROM '))
  return lines.slice(0, second).flatMap((line) => (line.startsWith('RUN ') ? [line.slice('RUN '.length)] : []))
}

/** The files known to git that `.dockerignore` lets through. */
function contextFiles(): readonly string[] {
  const lines = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n')
  const rules = lines.filter((line) => line !== '' && !line.startsWith('#'))
  const known = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
  return known.split('\n').filter((file) => file !== '' && isLetThrough(file, rules) && existsSync(join(ROOT, file)))
}

/** The last rule that matches a file, or a directory above it, applies. */
function isLetThrough(file: string, rules: readonly string[]): boolean {
  const parts = file.split('/')
  const paths = parts.map((_, index) => parts.slice(0, index + 1).join('/'))
  return rules.reduce((isIn, rule) => {
    const isException = rule.startsWith('!')
    const pattern = patternOf(isException ? rule.slice(1) : rule)
    return paths.some((path) => pattern.test(path)) ? isException : isIn
  }, true)
}

function patternOf(rule: string): RegExp {
  const text = rule
    .replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll('**/', '\0')
    .replaceAll('*', '[^/]*')
    .replaceAll('\0', '(?:.*/)?')
  return new RegExp(`^${text}$`)
}

test(
  '[I-02] the commands of the container file build, from what the image gets, a program that runs',
  { timeout: BUILD_MS },
  async () => {
    for (const file of contextFiles()) {
      mkdirSync(join(image, dirname(file)), { recursive: true })
      cpSync(join(ROOT, file), join(image, file))
    }
    const commands = buildCommands()
    expect(commands.length).toBeGreaterThan(0)
    for (const command of commands) {
      const { status, stdout, stderr } = spawnSync('sh', ['-ec', command], { cwd: image, encoding: 'utf8' })
      expect({ command, status, said: status === 0 ? '' : `${stdout}${stderr}` }).toEqual({
        command,
        status: 0,
        said: '',
      })
    }
    // What the production server must not contain, and what it must.
    for (const name of ['tsx', 'esbuild', 'typescript', 'vitest']) {
      expect({ name, isThere: existsSync(join(image, 'node_modules', name)) }).toEqual({ name, isThere: false })
    }
    for (const name of ['LICENSE', 'NOTICE']) expect(existsSync(join(image, name))).toBe(true)

    const [, link = ''] = /ln -s \/opt\/impresario\/(\S+) /.exec(CONTAINERFILE) ?? []
    const data = mkdtempSync(join(tmpdir(), 'impresario-image-data-'))
    onTestFinished(() => rmSync(data, { recursive: true, force: true }))
    const env = { PATH: process.env['PATH'] ?? '', NODE_ENV: 'production', API_HOST: '127.0.0.1', API_PORT: '0' }
    const server = spawn(process.execPath, [join(image, link), 'start'], {
      cwd: data,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    onTestFinished(() => {
      server.kill('SIGKILL')
    })
    let said = ''
    const address = await new Promise<string>((resolve, reject) => {
      for (const stream of [server.stdout, server.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => {
          said += text
          const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0]
          if (found !== undefined) resolve(found)
        })
      }
      server.once('close', (code) => reject(new Error(`It ended with ${code}:\n${said}`)))
    })
    // As the health check of the image does.
    const [, check = ''] = /CMD \["node", "-e", "(.*)"\]/.exec(CONTAINERFILE) ?? []
    const port = new URL(address).port
    expect(spawnSync(process.execPath, ['-e', check], { env: { ...env, API_PORT: port } }).status).toBe(0)
    server.kill('SIGTERM')
    const [code] = (await once(server, 'close')) as [number | null]
    expect(code).toBe(0)
  },
)

/** The first step that fails; `undefined` if all succeeded, or if there is no engine. */
function failedWithDocker(): readonly string[] | undefined {
  if (spawnSync('docker', ['info'], { stdio: 'ignore' }).status !== 0) return undefined
  const env = { ...process.env, PUBLIC_URL: 'https://impresario.example.com' }
  const steps = [
    ['compose', '--profile', 'redis', '--profile', 'postgres', 'config', '--quiet'],
    ['build', '-q', '-f', 'Containerfile', '-t', 'impresario:test', '..'],
    ['run', '--rm', 'impresario:test', 'impresario', '--version'],
  ]
  return steps.find((args) => spawnSync('docker', args, { cwd: join(ROOT, 'deploy'), env }).status !== 0)
}

test(
  '[I-02] a Docker engine, where there is one, builds the image and accepts the compose file',
  { timeout: BUILD_MS },
  () => {
    expect(failedWithDocker()).toBeUndefined()
  },
)
