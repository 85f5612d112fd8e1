import { describe, expect, test } from 'vitest'
import type { TaskFiles } from '@impresario/protocol'
import type { Log } from '../ports/runtime.ts'
import type { TurnInput } from './blueprint.ts'
import { open } from '../job/samples.ts'
import { LateFiles, LateLog } from './late-input.ts'

const given = { job: open().job, signal: new AbortController().signal }

describe('files', () => {
  test('are opened by their first use, and pass everything on', async () => {
    const calls: unknown[][] = []
    const noted = <T>(call: unknown[], answer: T): T => {
      calls.push(call)
      return answer
    }
    const ref = { name: 'a', uri: 's3://b/jobs/1/a', bytes: 1, etag: '' }
    const opened: TaskFiles = {
      download: async (...args) => `${calls.push(['download', ...args])}`,
      upload: async (...args) => noted(['upload', ...args], ref),
      readJson: async (...args) => calls.push(['readJson', ...args]),
      writeJson: async (...args) => noted(['writeJson', ...args], ref),
      list: async (...args) => noted(['list', ...args], [ref]),
    }
    let opens = 0
    const input: TurnInput = {
      ...given,
      get files() {
        opens += 1
        return opened
      },
    }
    const files = new LateFiles(input)
    expect(opens).toBe(0)
    expect(await files.download('a')).toBe('1')
    expect(await files.upload('/tmp/a', 'b')).toBe(ref)
    expect(await files.readJson('c')).toBe(3)
    expect(await files.writeJson('d', 1)).toBe(ref)
    expect(await files.list('e')).toEqual([ref])
    expect(calls).toEqual([
      ['download', 'a'],
      ['upload', '/tmp/a', 'b'],
      ['readJson', 'c'],
      ['writeJson', 'd', 1],
      ['list', 'e'],
    ])
  })

  test('are refused where no store is configured', async () => {
    await expect(new LateFiles(given).download('a')).rejects.toMatchObject({ code: 'FILES_UNAVAILABLE' })
  })
})

describe('the log', () => {
  test('is opened by its first line', () => {
    const lines: unknown[][] = []
    const log: Log = {
      debug: (...args) => lines.push(['debug', ...args]),
      info: (...args) => lines.push(['info', ...args]),
      warn: (...args) => lines.push(['warn', ...args]),
      error: (...args) => lines.push(['error', ...args]),
    }
    const late = new LateLog({ ...given, log })
    late.debug('a', { n: 1 })
    late.info('b')
    late.warn('c')
    late.error('d')
    expect(lines).toEqual([
      ['debug', 'a', { n: 1 }],
      ['info', 'b', undefined],
      ['warn', 'c', undefined],
      ['error', 'd', undefined],
    ])
  })

  test('goes nowhere where there is none', () => {
    const late = new LateLog(given)
    expect(() => {
      late.debug('a')
      late.info('b')
      late.warn('c')
      late.error('d')
    }).not.toThrow()
  })
})
