import type { PostgresServer } from './postgres-server.fixture.ts'

/** Stops the clock of one namespace, so that only the test moves it. */
export async function freezeClock(
  server: PostgresServer,
  namespace: string,
): Promise<{ readonly advance: (ms: number) => Promise<void> }> {
  const clock = `"${namespace}".test_clock`
  await server.query(`
    CREATE TABLE ${clock} AS SELECT "${namespace}".now_ms() AS at;
    CREATE OR REPLACE FUNCTION "${namespace}".now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT at FROM ${clock}'
  `)
  return {
    async advance(ms) {
      await server.query(`UPDATE ${clock} SET at = at + ${ms}`)
    },
  }
}
