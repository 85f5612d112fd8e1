import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { missingPostgres, startPostgres } from '../../../test/servers/postgres-server.ts'
import type { PostgresServer } from '../../../test/servers/postgres-server.ts'
import { describeHistory } from './conformance/describe-history.fixture.ts'
import { HandClock, recordingLog } from './history.fixture.ts'
import { MemoryHistory } from './memory-history.ts'
import { openStore } from './open.ts'

let count = 0
const open = (uri: string) => openStore(uri, { clock: new HandClock(), log: recordingLog() })

describeHistory('memory', {
  isDurable: false,
  place: async () => {
    // Its instances are the same object: they share the process.
    const store = new MemoryHistory()
    return { open: async () => store }
  },
})

const directory = mkdtempSync(join(tmpdir(), 'impresario-history-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

describeHistory('SQLite', {
  isDurable: true,
  place: async () => {
    count += 1
    const uri = `sqlite:${join(directory, `${count}.db`)}`
    return { open: async () => open(uri) }
  },
})

describe.skipIf(missingPostgres !== undefined)(`with a server ${missingPostgres ?? ''}`, () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  }, 120_000)
  afterAll(() => server.stop())

  describeHistory('PostgreSQL', {
    isDurable: true,
    place: async () => {
      count += 1
      const uri = `${server.url}?schema=history_${count}`
      return { open: async () => open(uri) }
    },
  })
})
