/** What the peers on PostgreSQL have in common: the parts of the driver that we call. */
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

/** Connections per process, for all contestants. */
export const POOL_MAX = 20

export async function countOf(pool: Pool, sql: string): Promise<number> {
  const { rows } = await pool.query(sql)
  return Number(Object.values(rows[0] ?? {})[0])
}
