import pg from 'pg'

type Ask = (sql: string, values?: readonly unknown[]) => Promise<unknown>

/** Stops the clock of one namespace, which then shows the time that it was last set to. */
export async function stopClock(ask: Ask, namespace: string): Promise<(at: number) => Promise<void>> {
  const clock = `"${namespace}".test_clock`
  await ask(`
    CREATE TABLE ${clock} AS SELECT "${namespace}".now_ms() AS at;
    CREATE OR REPLACE FUNCTION "${namespace}".now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT at FROM ${clock}'
  `)
  return async (at) => {
    await ask(`UPDATE ${clock} SET at = $1`, [at])
  }
}

let pool: pg.Pool | undefined

/** One connection per thread, which does not keep the thread alive. */
export function askerOf(url: string): Ask {
  if (pool === undefined) {
    pool = new pg.Pool({ connectionString: url, max: 1, allowExitOnIdle: true })
    // The server may end before this thread does.
    pool.on('error', () => undefined)
  }
  const asked = pool
  return (sql, values = []) => asked.query(sql, [...values])
}
