import { stopClock } from '../../../test/servers/postgres-clock.ts'
import type { PostgresServer } from './postgres-server.fixture.ts'

/** Stops the clock of one namespace, so that only the test moves it. */
export async function freezeClock(
  server: PostgresServer,
  namespace: string,
): Promise<{ readonly advance: (ms: number) => Promise<void> }> {
  const [row] = await server.query(`SELECT "${namespace}".now_ms() AS at`)
  let at = Number(row?.['at'])
  const setClock = await stopClock((sql, values) => server.query(sql, values), namespace)
  await setClock(at)
  return {
    async advance(ms) {
      at += ms
      await setClock(at)
    },
  }
}
