import { BY_KEY } from './commit-function.ts'

/** Items whose alarm came are brought up to date in portions, so that a claim after a long rest does not take long itself. */
const RING_MAX = 5_000
/** Lanes are counted exactly up to here. A queue of a million must not make every look at its lanes read a million rows. */
const READY_COUNT_MAX = 1_000
/** How soon to look again for what somebody else has locked at this moment. */
const LOCKED_RETRY_MS = 5

/** Claims, and what they stand on. */
export const CLAIM_FUNCTIONS = `
CREATE FUNCTION {schema}.ring(p_queue text, v_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM {schema}.items i WHERE i.queue = p_queue AND i.alarm_at <= v_now) THEN
    RETURN;
  END IF;
  WITH due AS MATERIALIZED (
    SELECT i.id, now.state, {schema}.expiry_of(i.leased_until, i.settle_at, i.unclaimed_at, i.run_at, i.deliveries) AS expiry
    FROM {schema}.items i
    CROSS JOIN LATERAL (SELECT {schema}.state_of(v_now, i.due_at, i.leased_until,
      {schema}.expiry_of(i.leased_until, i.settle_at, i.unclaimed_at, i.run_at, i.deliveries), i.closing) AS state) AS now
    WHERE i.queue = p_queue AND i.alarm_at <= v_now
    ORDER BY i.alarm_at LIMIT ${RING_MAX} FOR UPDATE OF i SKIP LOCKED
  )
  UPDATE {schema}.items i SET state = d.state, expired_at = d.expiry, fallback_on = coalesce(i.fallback_at <= v_now, false),
    alarm_at = {schema}.alarm_of(v_now, d.state, i.due_at, i.leased_until, d.expiry, i.fallback_at)
  FROM due d WHERE i.queue = p_queue AND i.id = d.id;
END $$;

-- Up to so many lanes with ready items, in the order of their names, beginning after the given one (null: at the first) and
-- going round.
CREATE FUNCTION {schema}.lanes_from(p_queue text, p_after text, p_limit integer) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  found text[] := '{}';
  l text COLLATE "C" := p_after;
  own text COLLATE "C";
  other text COLLATE "C";
  again boolean := p_after IS NULL;
BEGIN
  WHILE cardinality(found) < p_limit LOOP
    IF l IS NULL THEN
      own := (SELECT i.lane FROM {schema}.items i WHERE i.queue = p_queue AND i.state = 1 ORDER BY i.lane LIMIT 1);
      other := (SELECT i.fallback_lane FROM {schema}.items i WHERE i.queue = p_queue AND i.state = 1 AND i.fallback_on
        ORDER BY i.fallback_lane LIMIT 1);
    ELSE
      own := (SELECT i.lane FROM {schema}.items i WHERE i.queue = p_queue AND i.state = 1 AND i.lane > l
        ORDER BY i.lane LIMIT 1);
      other := (SELECT i.fallback_lane FROM {schema}.items i
        WHERE i.queue = p_queue AND i.state = 1 AND i.fallback_on AND i.fallback_lane > l ORDER BY i.fallback_lane LIMIT 1);
    END IF;
    l := least(own, other);
    IF l IS NULL THEN
      EXIT WHEN again;
      again := true;
    ELSE
      EXIT WHEN again AND l > p_after COLLATE "C";
      found := found || l::text;
    END IF;
  END LOOP;
  RETURN found;
END $$;

CREATE FUNCTION {schema}.has_ready(p_queue text, p_lanes text[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF p_lanes IS NULL THEN
    RETURN EXISTS (SELECT FROM {schema}.items i WHERE i.queue = p_queue AND i.state = 1);
  END IF;
  -- One row of each, by its index: without the limits all ready rows might be gathered first.
  RETURN EXISTS (SELECT FROM unnest(p_lanes) AS g(lane) CROSS JOIN LATERAL (
    (SELECT FROM {schema}.items i WHERE i.queue = p_queue AND i.state = 1 AND i.lane = g.lane LIMIT 1)
    UNION ALL
    (SELECT FROM {schema}.items i
      WHERE i.queue = p_queue AND i.state = 1 AND i.fallback_on AND i.fallback_lane = g.lane LIMIT 1)
  ) x);
END $$;

CREATE FUNCTION {schema}.next_in(p_queue text, v_now bigint) RETURNS bigint LANGUAGE sql AS $$
  SELECT greatest(i.alarm_at - v_now, ${LOCKED_RETRY_MS}) FROM {schema}.items i
  WHERE i.queue = p_queue AND i.alarm_at IS NOT NULL ORDER BY i.alarm_at LIMIT 1
$$;

-- The last row has no id: it says when to come again. With no lanes named, each row tells through whose turn it came.
CREATE FUNCTION {schema}.claim(
  p_queue text, p_lanes text[], p_limit integer, p_lease bigint, p_holder text, p_session bigint, p_after text
) RETURNS TABLE (id text, token bigint, lane text, priority double precision, payload text, deliveries integer,
  expires_in bigint, turn text, next_in bigint) LANGUAGE plpgsql ${BY_KEY} AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {schema}.now_ms();
  in_turn boolean := p_lanes IS NULL;
  lanes text[] := p_lanes;
  got integer := 0;
  cap integer := 4;
  n integer;
  more boolean;
BEGIN
  PERFORM {schema}.ring(p_queue, v_now);
  FOR round IN 1..6 LOOP
    EXIT WHEN got >= p_limit;
    IF in_turn THEN
      lanes := {schema}.lanes_from(p_queue, p_after, p_limit - got);
    END IF;
    EXIT WHEN cardinality(lanes) = 0;
    n := CASE WHEN in_turn THEN ceil((p_limit - got)::double precision / cardinality(lanes)) ELSE p_limit - got END;
    RETURN QUERY
    WITH found AS MATERIALIZED (
      SELECT DISTINCT ON (b.id) b.id, b.seq, g.lane AS turn,
        CASE WHEN in_turn THEN b.place ELSE b.rank END AS first, CASE WHEN in_turn THEN g.o ELSE b.seq END AS second
      FROM unnest(lanes) WITH ORDINALITY AS g(lane, o) CROSS JOIN LATERAL (
        SELECT u.id, u.seq, u.rank, row_number() OVER (ORDER BY u.rank, u.seq) AS place FROM (
          (SELECT i.id, i.seq, i.rank FROM {schema}.items i
            WHERE i.queue = p_queue AND i.state = 1 AND i.lane = g.lane ORDER BY i.rank, i.seq LIMIT n + cap)
          UNION ALL
          (SELECT i.id, i.seq, i.rank FROM {schema}.items i
            WHERE i.queue = p_queue AND i.state = 1 AND i.fallback_on AND i.fallback_lane = g.lane
            ORDER BY i.rank, i.seq LIMIT n + cap)
        ) u ORDER BY u.rank, u.seq LIMIT n + cap
      ) b ORDER BY b.id, b.place, g.o
    ), taken AS MATERIALIZED (
      SELECT i.id, f.turn, f.first, f.second FROM found f JOIN {schema}.items i ON i.queue = p_queue AND i.id = f.id
      -- The sum keeps the index of ready rows out of this: each row is looked up by its key.
      WHERE i.state + 0 = 1 AND i.seq = f.seq AND (i.alarm_at IS NULL OR i.alarm_at > v_now)
      ORDER BY f.first, f.second LIMIT p_limit - got FOR UPDATE OF i SKIP LOCKED
    ), leased AS (
      UPDATE {schema}.items i SET token = nextval('{schema}.tokens'), holder = p_holder, state = 2, closing = false,
        session = CASE WHEN p_holder IS NULL THEN p_session END, leased_until = v_now + p_lease,
        deliveries = i.deliveries + 1, run_at = v_now + i.run_ms,
        alarm_at = least(v_now + p_lease, i.settle_at, v_now + i.run_ms)
      FROM taken x WHERE i.queue = p_queue AND i.id = x.id
      RETURNING i.id, i.token, i.lane, i.priority, i.payload, i.deliveries,
        greatest(least(i.settle_at, i.run_at) - v_now, 0) AS expires_in, i.settle_at, i.run_at, x.turn, x.first, x.second
    )
    SELECT l.id, l.token, l.lane, l.priority, l.payload, l.deliveries,
      CASE WHEN l.settle_at IS NOT NULL OR l.run_at IS NOT NULL THEN l.expires_in END, l.turn, NULL::bigint
    FROM leased l ORDER BY l.first, l.second;
    GET DIAGNOSTICS n = ROW_COUNT;
    got := got + n;
    EXIT WHEN got >= p_limit OR NOT {schema}.has_ready(p_queue, p_lanes);
    cap := cap * 4;
  END LOOP;
  more := {schema}.has_ready(p_queue, p_lanes);
  RETURN QUERY SELECT NULL::text, NULL::bigint, NULL::text, NULL::double precision, NULL::text, NULL::integer, NULL::bigint,
    NULL::text, CASE WHEN more AND got >= p_limit THEN 0 WHEN more THEN ${LOCKED_RETRY_MS} ELSE {schema}.next_in(p_queue, v_now) END;
END $$;

CREATE FUNCTION {schema}.claim_expired(p_queue text, p_limit integer, p_lease bigint, p_session bigint)
RETURNS TABLE (id text, token bigint, lane text, priority double precision, payload text, deliveries integer,
  expires_in bigint, turn text, next_in bigint) LANGUAGE plpgsql ${BY_KEY} AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {schema}.now_ms();
  got integer;
  more boolean;
BEGIN
  PERFORM {schema}.ring(p_queue, v_now);
  RETURN QUERY
  WITH taken AS MATERIALIZED (
    SELECT i.id, i.expired_at FROM {schema}.items i WHERE i.queue = p_queue AND i.state = 3
    ORDER BY i.expired_at LIMIT p_limit FOR UPDATE SKIP LOCKED
  ), leased AS (
    UPDATE {schema}.items i SET token = nextval('{schema}.tokens'), holder = NULL, session = p_session, closing = true, state = 4,
      leased_until = v_now + p_lease, alarm_at = v_now + p_lease
    FROM taken x WHERE i.queue = p_queue AND i.id = x.id
    RETURNING i.id, i.token, i.lane, i.priority, i.payload, i.deliveries, x.expired_at
  )
  SELECT l.id, l.token, l.lane, l.priority, l.payload, l.deliveries, 0::bigint, NULL::text, NULL::bigint
  FROM leased l ORDER BY l.expired_at;
  GET DIAGNOSTICS got = ROW_COUNT;
  more := EXISTS (SELECT FROM {schema}.items i WHERE i.queue = p_queue AND i.state = 3);
  RETURN QUERY SELECT NULL::text, NULL::bigint, NULL::text, NULL::double precision, NULL::text, NULL::integer, NULL::bigint,
    NULL::text, CASE WHEN more AND got >= p_limit THEN 0 WHEN more THEN ${LOCKED_RETRY_MS} ELSE {schema}.next_in(p_queue, v_now) END;
END $$;

CREATE FUNCTION {schema}.lanes(p_queue text) RETURNS TABLE (lane text, ready bigint) LANGUAGE plpgsql ${BY_KEY} AS $$
#variable_conflict use_column
BEGIN
  PERFORM {schema}.ring(p_queue, {schema}.now_ms());
  RETURN QUERY SELECT g.lane, c.n FROM unnest({schema}.lanes_from(p_queue, NULL, 2147483647)) AS g(lane)
  CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
    (SELECT FROM {schema}.items i WHERE i.queue = p_queue AND i.state = 1 AND i.lane = g.lane LIMIT ${READY_COUNT_MAX})
    UNION ALL
    (SELECT FROM {schema}.items i
      WHERE i.queue = p_queue AND i.state = 1 AND i.fallback_on AND i.fallback_lane = g.lane LIMIT ${READY_COUNT_MAX})
  ) x) c WHERE c.n > 0;
END $$;

-- For the poll: which lanes have something, without counting.
CREATE FUNCTION {schema}.ready_lanes(p_queue text, p_limit integer) RETURNS text[] LANGUAGE plpgsql ${BY_KEY} AS $$
BEGIN
  PERFORM {schema}.ring(p_queue, {schema}.now_ms());
  RETURN {schema}.lanes_from(p_queue, NULL, p_limit);
END $$;
`
