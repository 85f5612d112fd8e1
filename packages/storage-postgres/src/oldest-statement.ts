/** How long the first item of a lane has been due, the longest of all lanes; `$1` is the queue, `$2` a lane if only that one is asked for. */
export function oldestStatement(schema: string, isOneLane = false): string {
  const head = `SELECT i.due_at FROM ${schema}.items i WHERE i.queue = $1 AND i.state = 1 AND i.lane = g.lane ORDER BY i.rank, i.seq LIMIT 1`
  const lanes = isOneLane
    ? '(SELECT $2::text) AS g(lane)'
    : `unnest(${schema}.lanes_from($1, NULL, 2147483647)) AS g(lane)`
  return `SELECT (${schema}.now_ms() - min(h.due_at))::float8 AS waited FROM ${lanes} CROSS JOIN LATERAL (${head}) h`
}
