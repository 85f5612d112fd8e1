/** What the peers on PostgreSQL have in common: the driver, as far as we call it. */
export interface Pool {
  query(
    sql: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>
  on(event: 'error' | 'connect', listener: (news: unknown) => void): void
  end(): Promise<void>
}

export interface Driver {
  readonly Pool: new (options: object) => Pool
}

/** Connections of each process, for everybody. */
export const POOL_MAX = 20

export async function countOf(pool: Pool, sql: string): Promise<number> {
  const { rows } = await pool.query(sql)
  return Number(Object.values(rows[0] ?? {})[0])
}
