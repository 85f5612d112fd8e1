import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createOrchestrator } from '@impresario/server'
import { blueprint } from '@impresario/core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { EXIT } from './failure.ts'
import { runCli } from './run-cli.fixture.ts'

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url))

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'impresario-migrate-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const waits = blueprint('waits', { start: 'ask' }, (state) => ({
  ask: state.handler((_context, actions) =>
    actions.awaitHumanApproval({ message: 'Go on?', transitions: { approved: 'done' } }),
  ),
  done: state.end(),
}))

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** A storage in a directory with so many jobs that wait. */
async function withJobs(name: string, count: number): Promise<string> {
  const storageUrl = `file:${join(directory, name)}`
  const orchestrator = createOrchestrator({ settings: { storageUrl }, blueprints: [waits], log: silent })
  await orchestrator.start()
  const client = orchestrator.client()
  await Promise.all(Array.from({ length: count }, () => client.start('waits', {})))
  await orchestrator.stop()
  return storageUrl
}

describe('migrate', () => {
  test(
    '[G-01] counts, moves and says what it moved; the old storage is closed to orchestrators',
    { timeout: 120_000 },
    async () => {
      const from = await withJobs('old', 3)
      const to = `file:${join(directory, 'new')}`
      const plan = await runCli(['migrate', from, to, '--dry-run'])
      expect(plan.code).toBe(0)
      expect(plan.stdout).toMatch(/job +3 +0[\s\S]*would be created[\s\S]*Nothing was changed/)
      const moved = await runCli(['migrate', from, to])
      expect(moved.code).toBe(0)
      expect(moved.stdout).toMatch(/job +3 +[\da-f]{32}\n[\s\S]*entries moved/)
      const env = { STORAGE_URL: from, API_HOST: '127.0.0.1', CLIENT_TOKEN: 'c', WORKER_TOKEN: 'w' }
      const refused = await runCli(['start'], { env })
      expect(refused.code).toBe(EXIT.configurationRefused)
      expect(refused.stderr).toContain('This storage was moved to file:')
      const unmarked = await runCli(['migrate', '--unmark', from])
      expect(unmarked.stdout).toContain('The mark "moved"')
    },
  )

  test('[G-01] that is killed goes on when it is run again', { timeout: 120_000 }, async () => {
    const from = await withJobs('old', 400)
    const to = `file:${join(directory, 'new')}`
    const child = spawn(process.execPath, [MAIN, 'migrate', from, to, '--page', '1'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    // It says how far it is as soon as it has begun to copy.
    await once(child.stderr, 'data')
    child.kill('SIGKILL')
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    const rest = await runCli(['migrate', from, to, '--json'])
    expect(rest.code).toBe(0)
    const report = JSON.parse(rest.stdout) as Readonly<Record<string, unknown>>
    expect(report).toMatchObject({ outcome: 'moved', resumed: true, entries: { job: { count: 400 } } })
  })

  test('[G-01] [H-03] takes addresses from the environment and prints no password', { timeout: 120_000 }, async () => {
    const from = await withJobs('old', 1)
    const env = { TARGET: 'postgres://me:hidden@127.0.0.1:1/db?schema=x' }
    const unreachable = await runCli(['migrate', from, 'env:TARGET'], { env })
    expect(unreachable).toMatchObject({ code: EXIT.storageUnavailable, stdout: '' })
    expect(unreachable.stderr).toContain('PostgreSQL did not answer')
    expect(unreachable.stderr).not.toContain('hidden')
    const unknown = await runCli(['migrate', from, 'env:NOWHERE'])
    expect(unknown.code).toBe(2)
    expect(unknown.stderr).toContain('The environment has no NOWHERE')
  })
})
