/**
 * A cached plan must not depend on the size of the tables when it was made: all of these statements look up a few rows
 * by key. So they do not rely on estimates, which treat a queue that was empty a minute ago as empty. Three rules apply:
 * - rows that are named by key are looked up one by one, in a subquery that the planner cannot flatten
 *   (\`FOR UPDATE\`, \`OFFSET 0\`);
 * - locked rows are changed by their position (\`ctid\`), which no other process can move: index reads get such a high
 *   cost that no index is scanned for this;
 * - the first rows of an order come from the index that has this order.
 *
 * Plans with a deliberately high estimate must not be JIT-compiled either. The wait for a row lock is bounded.
 */
export const BY_KEY = `SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
  SET cpu_index_tuple_cost = 1000 SET jit = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '10s'`

/**
 * Decides and writes a group of batches that touch different names, each batch separately, and returns which of them
 * conflict.
 *
 * Rows are locked in the order of their names, items before records, so that two groups never deadlock. If another
 * writer creates a row between the read and the write, the number of written rows shows it. The whole group is then
 * rolled back and retried, and the retry finds the new row and decides by it.
 */
export const COMMIT_FUNCTION = `
CREATE OR REPLACE FUNCTION {schema}.commit(p_locks json, p_keys json, p_puts json, p_items json)
RETURNS integer[] LANGUAGE plpgsql ${BY_KEY} AS $$
DECLARE
  v_now bigint := {schema}.now_ms();
  base bigint;
  deltas {schema}.delta[];
  bad integer[] := '{}';
  expected integer;
  gone tid[];
  gone_by integer[];
  dropped tid[];
  written integer;
BEGIN
  -- Rows are locked one by one as they are looked up, hence in the order in which they are named. A claim writes nothing once
  -- its item has expired (state 3), noticed or not.
  IF p_locks IS NOT NULL THEN
    SELECT coalesce(array_agg(l.b) FILTER (WHERE l.t IS NOT NULL AND (l.t = 0 OR i.token IS DISTINCT FROM l.t OR i.state = 3)), '{}'),
      array_agg(i.place) FILTER (WHERE l.g), array_agg(l.b) FILTER (WHERE l.g)
    INTO bad, gone, gone_by
    FROM json_to_recordset(p_locks) AS l(b integer, q text, i text, t bigint, g boolean)
    LEFT JOIN LATERAL (
      SELECT x.ctid AS place, x.token, {schema}.state_of(v_now, x.due_at, x.leased_until,
        {schema}.expiry_of(x.leased_until, x.settle_at, x.unclaimed_at, x.run_at, x.deliveries), x.closing) AS state
      FROM {schema}.items x WHERE x.queue = l.q AND x.id = l.i FOR UPDATE
    ) i ON true;
  END IF;
  IF p_keys IS NOT NULL THEN
    WITH keys AS MATERIALIZED (
      SELECT k.*, r.* FROM json_to_recordset(p_keys)
        AS k(b integer, k text, i text, v integer, d boolean, o text, s text, m text)
      LEFT JOIN LATERAL (
        SELECT x.ctid AS place, x.version, x.expires_at, x.status, x.owner, x.name FROM {schema}.records x WHERE x.kind = k.k AND x.id = k.i FOR UPDATE
      ) r ON true
    ), losers AS MATERIALIZED (
      SELECT coalesce(array_agg(k.b), '{}') || bad AS b FROM keys k
      WHERE k.v - 1 <> CASE WHEN k.d OR k.version IS NULL OR k.expires_at <= v_now THEN 0 ELSE k.version END
    ), kept AS (
      SELECT k.* FROM keys k CROSS JOIN losers l WHERE NOT k.b = ANY (l.b)
    ), changes AS (
      SELECT k.k, k.status, k.owner, k.name, -1 AS n FROM kept k WHERE k.status IS NOT NULL
      UNION ALL
      SELECT k.k, k.s, k.o, k.m, 1 FROM kept k WHERE k.s IS NOT NULL
    ), sums AS (
      SELECT c.k, c.status, coalesce(c.owner, '') AS owner, coalesce(c.name, '') AS name, sum(c.n)::bigint AS n
      FROM changes c GROUP BY 1, 2, 3, 4 HAVING sum(c.n) <> 0
    )
    SELECT l.b, (SELECT array_agg(ROW(u.k, u.status, u.owner, u.name, u.n)::{schema}.delta) FROM sums u),
      (SELECT count(k.v) FROM kept k), (SELECT array_agg(k.place) FROM kept k WHERE k.d AND k.place IS NOT NULL)
    INTO bad, deltas, expected, dropped FROM losers l;
  END IF;

  IF gone IS NOT NULL THEN
    DELETE FROM {schema}.items i USING unnest(gone, gone_by) AS g(place, b) WHERE i.ctid = g.place AND NOT g.b = ANY (bad);
  END IF;
  IF dropped IS NOT NULL THEN
    DELETE FROM {schema}.records r USING unnest(dropped) AS d(place) WHERE r.ctid = d.place;
  END IF;

  IF p_puts IS NOT NULL THEN
    INSERT INTO {schema}.records AS r (kind, id, version, expires_at, owner, status, name, text, data)
    SELECT p.k, p.i, p.v, v_now + p.e, p.o, p.s, p.m, p.t, p.d
    FROM json_to_recordset(p_puts)
      AS p(n integer, b integer, k text, i text, v integer, e bigint, o text, s text, m text, t text, d text)
    WHERE NOT p.b = ANY (bad) ORDER BY p.n
    ON CONFLICT (kind, id) DO UPDATE SET version = excluded.version, expires_at = excluded.expires_at,
      owner = excluded.owner, status = excluded.status, name = excluded.name, text = excluded.text, data = excluded.data
    WHERE r.version = excluded.version - 1 OR (excluded.version = 1 AND r.expires_at <= v_now);
    GET DIAGNOSTICS written = ROW_COUNT;
    IF written <> expected THEN
      RAISE EXCEPTION 'another writer was faster' USING ERRCODE = 'IM001';
    END IF;
  END IF;

  IF p_items IS NOT NULL THEN
    base := nextval('{schema}.orders');
    INSERT INTO {schema}.items AS x (queue, id, seq, rank, priority, due_at, alarm_at, expired_at, settle_at, unclaimed_at,
      run_ms, fallback_at, state, fallback_on, lane, fallback_lane, payload, token, holder, session, leased_until, deliveries, run_at)
    SELECT p.q, p.i, base + p.o, {schema}.rank_of(at.due, p.p), p.p, at.due,
      {schema}.alarm_of(v_now, now.state, at.due, at.leased, at.expiry, at.fallback), at.expiry, at.settle, at.unclaimed,
      p.r, at.fallback, now.state, coalesce(at.fallback <= v_now, false), p.l, p.fl, p.d,
      coalesce(p.ct, 0), p.ch, p.cs, at.leased, CASE WHEN p.ct IS NULL THEN 0 ELSE 1 END, at.run
    FROM json_to_recordset(p_items) AS p(n integer, o integer, b integer, q text, i text, l text, p double precision,
      w bigint, fl text, fa bigint, u bigint, s bigint, r bigint, d text, ct bigint, cl bigint, ch text, cs bigint)
    CROSS JOIN LATERAL (SELECT v_now + p.w AS due, v_now + p.w + p.s AS settle, v_now + p.w + p.u AS unclaimed,
      v_now + p.w + p.fa AS fallback, coalesce(v_now + p.cl, 0) AS leased,
      CASE WHEN p.ct IS NOT NULL THEN v_now + p.r END AS run,
      CASE WHEN p.ct IS NULL THEN v_now + p.w + least(p.s, p.u)
        ELSE least(v_now + p.w + p.s, CASE WHEN p.r <= p.cl THEN v_now + p.r END) END AS expiry) AS at
    CROSS JOIN LATERAL (SELECT {schema}.state_of(v_now, at.due, at.leased, at.expiry, false) AS state) AS now
    WHERE NOT p.b = ANY (bad) ORDER BY p.n
    ON CONFLICT (queue, id) DO UPDATE SET seq = excluded.seq, rank = excluded.rank, priority = excluded.priority,
      token = excluded.token, session = excluded.session, due_at = excluded.due_at, leased_until = excluded.leased_until,
      alarm_at = excluded.alarm_at,
      expired_at = excluded.expired_at, settle_at = excluded.settle_at, unclaimed_at = excluded.unclaimed_at,
      run_ms = excluded.run_ms, run_at = excluded.run_at, fallback_at = excluded.fallback_at, deliveries = excluded.deliveries,
      state = excluded.state, fallback_on = excluded.fallback_on, closing = false, lane = excluded.lane,
      fallback_lane = excluded.fallback_lane, holder = excluded.holder, payload = excluded.payload;
  END IF;

  IF deltas IS NOT NULL THEN
    PERFORM {schema}.count_all(deltas);
  END IF;
  RETURN bad;
END $$;

-- Last in a transaction: nobody waits for anything while he holds a row of the counts.
CREATE OR REPLACE FUNCTION {schema}.count_all(deltas {schema}.delta[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO {schema}.counts AS c (kind, status, owner, name, stripe, n)
  SELECT d.kind, d.status, d.owner, d.name, pg_backend_pid() % 16, d.n FROM unnest(deltas) AS d
  ORDER BY 1, 2, 3, 4
  ON CONFLICT (kind, status, owner, name, stripe) DO UPDATE SET n = c.n + excluded.n;
END $$;

-- Records whose time is over are still in the counts until they are taken away. The kind is compared in a way that no index
-- serves, so that only those few are read.
CREATE OR REPLACE FUNCTION {schema}.counted(p_kind text, p_owner text, p_name text) RETURNS TABLE (status text, n bigint)
LANGUAGE plpgsql ${BY_KEY} AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {schema}.now_ms();
BEGIN
  RETURN QUERY SELECT x.status::text, sum(x.n)::bigint FROM (
    SELECT c.status, c.owner, c.name, c.n FROM {schema}.counts c WHERE c.kind = p_kind
    UNION ALL
    SELECT r.status, coalesce(r.owner, ''), coalesce(r.name, ''), -1 FROM {schema}.records r
    WHERE r.expires_at <= v_now AND r.kind || '' = p_kind AND r.status IS NOT NULL
  ) x
  WHERE (p_owner IS NULL OR x.owner = p_owner) AND (p_name IS NULL OR x.name = p_name)
  GROUP BY 1 HAVING sum(x.n) <> 0 ORDER BY 1;
END $$;

-- Takes away what has expired, a part at a time.
CREATE OR REPLACE FUNCTION {schema}.purge(p_limit integer) RETURNS integer LANGUAGE plpgsql ${BY_KEY} AS $$
DECLARE
  v_now bigint := {schema}.now_ms();
  deltas {schema}.delta[];
  purged integer;
BEGIN
  WITH old AS MATERIALIZED (
    SELECT r.ctid AS place FROM {schema}.records r WHERE r.expires_at <= v_now ORDER BY r.expires_at LIMIT p_limit FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM {schema}.records r USING old WHERE r.ctid = old.place RETURNING r.kind, r.status, r.owner, r.name
  ), sums AS (
    SELECT g.kind, g.status, coalesce(g.owner, '') AS owner, coalesce(g.name, '') AS name, count(*) AS n
    FROM gone g GROUP BY 1, 2, 3, 4
  )
  SELECT array_agg(ROW(u.kind, u.status, u.owner, u.name, -u.n)::{schema}.delta) FILTER (WHERE u.status IS NOT NULL),
    coalesce(sum(u.n), 0)
  INTO deltas, purged FROM sums u;
  IF deltas IS NOT NULL THEN
    PERFORM {schema}.count_all(deltas);
  END IF;
  RETURN purged;
END $$;
`
