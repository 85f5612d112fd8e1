import { BY_KEY } from './commit-function.ts'

/** Items with a due alarm are updated in portions, so that a claim after a long idle time does not itself take long. */
const RING_MAX = 5_000
/**
 * A lane is counted up to this number, and to a lower one when there are many lanes, because counting reads rows. With
 * a queue of a million items, a query of its lanes must not read a million rows.
 */
const READY_COUNT_MAX = 1_000
const READY_COUNT_MIN = 10
const READY_COUNT_TOTAL = 100_000
/** How soon to retry for items that are locked by others at this moment. */
const LOCKED_RETRY_MS = 5

/**
 * Up to a given number of rows of a lane, its own items and those whose fallback has begun, from their indexes.
 *
 * An index keeps the entries of claimed items until the next vacuum, all at the head of the lane. One claim has to skip
 * them; claims that are sent with it start where it found the first row.
 */
function rowsOfLane(isFallback = 'i.fallback_lane = g.lane'): string {
  return `
          (SELECT i.id, i.seq, i.rank, i.lane FROM {schema}.items i
            WHERE i.queue = q.queue AND i.state = 1 AND i.lane = g.lane
              AND i.rank >= coalesce(head_ranks[array_position(head_lanes, q.queue || ' ' || g.lane)], '-Infinity')
            ORDER BY i.rank, i.seq LIMIT n + cap)
          UNION ALL
          (SELECT i.id, i.seq, i.rank, NULL FROM {schema}.items i
            WHERE i.queue = q.queue AND i.state = 1 AND i.fallback_on AND ${isFallback}
            ORDER BY i.rank, i.seq LIMIT n + cap)`
}

/** The best items of several lanes first. An item that two lanes could give comes through its own lane. */
const BEST_FIRST = `
        SELECT u.id, u.seq, found_lanes[1] AS turn, u.lane, u.rank FROM unnest(found_lanes) AS g(lane)
        CROSS JOIN LATERAL (${rowsOfLane('i.fallback_lane = g.lane AND NOT i.lane = ANY (found_lanes)')}
        ) u ORDER BY u.rank, u.seq LIMIT n + cap`

/**
 * The best of each lane, then the second best of each. An item that two lanes could give comes through the lane where
 * it ranks better.
 */
const IN_ROTATION = `
        SELECT d.id, d.seq, d.turn, NULL::text AS lane, NULL::double precision AS rank FROM (
          SELECT DISTINCT ON (b.id) b.id, b.seq, g.lane AS turn, b.place, g.o
          FROM unnest(found_lanes) WITH ORDINALITY AS g(lane, o) CROSS JOIN LATERAL (
            SELECT u.id, u.seq, row_number() OVER (ORDER BY u.rank, u.seq) AS place FROM (${rowsOfLane()}
            ) u ORDER BY u.rank, u.seq LIMIT n + cap
          ) b ORDER BY b.id, b.place, g.o
        ) d ORDER BY d.place, d.o`

/** Expired items, the ones that expired first come first. */
const EXPIRED = `
        SELECT i.id, i.seq, NULL::text AS turn, NULL::text AS lane, NULL::double precision AS rank FROM {schema}.items i
        WHERE i.queue = q.queue AND i.state = 3
        ORDER BY i.expired_at LIMIT n + cap`

/**
 * Locks the first rows that `found` returns, in its order, skipping rows that are locked by others.
 *
 * Candidates are found by their index without a lock and then looked up one by one by their key, so that a claim over
 * several lanes locks only the rows that it takes. The lookup is a subquery with its own lock: the planner can neither
 * turn it into another kind of join nor read ahead.
 */
function lockStatement(found: string, state: number): string {
  return `WITH found AS MATERIALIZED (${found}
      ), taken AS (
        SELECT i.place, f.turn FROM found f CROSS JOIN LATERAL (
          SELECT x.ctid AS place FROM {schema}.items x
          WHERE x.queue = q.queue AND x.id = f.id AND x.seq = f.seq AND x.state + 0 = ${state}
            AND (x.alarm_at IS NULL OR x.alarm_at > v_now)
          FOR UPDATE SKIP LOCKED
        ) i LIMIT q.amount - got
      ), heads AS MATERIALIZED (
        SELECT f.lane, min(f.rank) AS rank FROM found f WHERE many AND f.lane IS NOT NULL GROUP BY f.lane
      )
      SELECT array_agg(t.place), array_agg(t.turn), (SELECT count(*) FROM found),
        (SELECT array_agg(q.queue || ' ' || h.lane) FROM heads h) || head_lanes, (SELECT array_agg(h.rank) FROM heads h) || head_ranks
      INTO places, turns, seen, head_lanes, head_ranks FROM taken t`
}

/** Claims, and the functions that they use. */
export const CLAIM_FUNCTIONS = `
CREATE OR REPLACE FUNCTION {schema}.ring(p_queue text, v_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  WITH due AS MATERIALIZED (
    SELECT i.ctid AS place, now.state, {schema}.expiry_of(i.leased_until, i.settle_at, i.unclaimed_at, i.run_at, i.deliveries) AS expiry
    FROM {schema}.items i
    CROSS JOIN LATERAL (SELECT {schema}.state_of(v_now, i.due_at, i.leased_until,
      {schema}.expiry_of(i.leased_until, i.settle_at, i.unclaimed_at, i.run_at, i.deliveries), i.closing) AS state) AS now
    WHERE i.queue = p_queue AND i.alarm_at <= v_now
    ORDER BY i.alarm_at LIMIT ${RING_MAX} FOR UPDATE OF i SKIP LOCKED
  )
  UPDATE {schema}.items i SET state = d.state, expired_at = d.expiry, fallback_on = coalesce(i.fallback_at <= v_now, false),
    alarm_at = {schema}.alarm_of(v_now, d.state, i.due_at, i.leased_until, d.expiry, i.fallback_at)
  FROM due d WHERE i.ctid = d.place;
END $$;

-- Up to so many lanes with ready items, in the order of their names, beginning after the given one (null: at the first) and
-- going round.
CREATE OR REPLACE FUNCTION {schema}.lanes_from(p_queue text, p_after text, p_limit integer) RETURNS text[] LANGUAGE plpgsql AS $$
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

-- When the state of an item of a queue may change next.
CREATE OR REPLACE FUNCTION {schema}.first_alarm(p_queue text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT i.alarm_at FROM {schema}.items i WHERE i.queue = p_queue AND i.alarm_at IS NOT NULL ORDER BY i.alarm_at LIMIT 1);
END $$;

-- Takes care of several claims in the order in which they are asked for, each with its number. The last row of each has no
-- id: it says when to come again. Where no lanes are named, a row tells through whose turn it came.
--
-- Nobody waits for a row here: what another has locked is passed over.
CREATE OR REPLACE FUNCTION {schema}.claim_all(p_requests json, p_session bigint)
RETURNS TABLE (r integer, id text, token bigint, lane text, priority double precision, payload text, deliveries integer,
  expires_in bigint, turn text, next_in bigint) LANGUAGE plpgsql ${BY_KEY} AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {schema}.now_ms();
  q record;
  many boolean := json_array_length(p_requests) > 1;
  head_lanes text[] := '{}';
  head_ranks double precision[] := '{}';
  alarm bigint;
  found_lanes text[];
  places tid[];
  turns text[];
  got integer;
  seen integer;
  cap integer;
  n integer;
  asked integer;
  more boolean;
  rang boolean;
BEGIN
  FOR q IN
    SELECT x.* FROM json_to_recordset(p_requests)
      AS x(r integer, queue text, lanes text[], amount integer, lease bigint, holder text, after text, expired boolean)
  LOOP
    alarm := {schema}.first_alarm(q.queue);
    rang := coalesce(alarm <= v_now, false);
    IF rang THEN
      PERFORM {schema}.ring(q.queue, v_now);
    END IF;
    got := 0;
    cap := 4;
    more := false;
    found_lanes := q.lanes;
    FOR round IN 1..6 LOOP
      n := q.amount - got;
      asked := greatest(n, 1);
      IF q.lanes IS NULL AND NOT q.expired THEN
        found_lanes := {schema}.lanes_from(q.queue, q.after, asked);
      END IF;
      EXIT WHEN cardinality(found_lanes) = 0;
      IF q.expired THEN
        ${lockStatement(EXPIRED, 3)};
      ELSIF cardinality(found_lanes) = 1 OR q.lanes IS NOT NULL THEN
        ${lockStatement(BEST_FIRST, 1)};
      ELSE
        n := ceil(n::double precision / cardinality(found_lanes));
        ${lockStatement(IN_ROTATION, 1)};
      END IF;
      n := coalesce(cardinality(places), 0);
      got := got + n;
      -- An item with a fallback stands in two lanes, so as many lanes as were asked for may hold fewer items.
      more := seen > n OR (q.lanes IS NULL AND NOT q.expired AND n > 0 AND got < q.amount AND cardinality(found_lanes) >= asked);
      IF n > 0 AND q.expired THEN
        RETURN QUERY UPDATE {schema}.items i SET token = nextval('{schema}.tokens'), holder = NULL, session = p_session,
          closing = true, state = 4, leased_until = v_now + q.lease, alarm_at = v_now + q.lease
        FROM unnest(places) AS x(place) WHERE i.ctid = x.place
        RETURNING q.r, i.id::text, i.token, i.lane::text, i.priority, i.payload, i.deliveries, 0::bigint, NULL::text, NULL::bigint;
      ELSIF n > 0 THEN
        RETURN QUERY UPDATE {schema}.items i SET token = nextval('{schema}.tokens'), holder = q.holder, state = 2,
          closing = false, session = CASE WHEN q.holder IS NULL THEN p_session END, leased_until = v_now + q.lease,
          deliveries = i.deliveries + 1, run_at = v_now + i.run_ms,
          alarm_at = least(v_now + q.lease, i.settle_at, v_now + i.run_ms)
        FROM unnest(places, turns) AS x(place, turn) WHERE i.ctid = x.place
        RETURNING q.r, i.id::text, i.token, i.lane::text, i.priority, i.payload, i.deliveries,
          CASE WHEN i.settle_at IS NOT NULL OR i.run_at IS NOT NULL THEN greatest(least(i.settle_at, i.run_at) - v_now, 0) END,
          CASE WHEN q.lanes IS NULL THEN x.turn END, NULL::bigint;
      END IF;
      -- What is left may be locked by others at the head of its lane: look further.
      EXIT WHEN got >= q.amount OR NOT more;
      cap := cap * 4;
    END LOOP;
    IF NOT more AND q.lanes IS NULL AND NOT q.expired AND got > 0 AND got >= q.amount THEN
      -- Only as many lanes were looked at as were needed.
      more := EXISTS (SELECT FROM {schema}.items i WHERE i.queue = q.queue AND i.state = 1);
    END IF;
    IF NOT more AND (got > 0 OR rang) THEN
      alarm := {schema}.first_alarm(q.queue);
    END IF;
    IF NOT more AND rang AND got < q.amount THEN
      -- What others rang in the same moment was locked and passed over, and they may have let go of it since.
      more := CASE
        WHEN q.expired THEN EXISTS (SELECT FROM {schema}.items i WHERE i.queue = q.queue AND i.state = 3)
        WHEN q.lanes IS NULL THEN EXISTS (SELECT FROM {schema}.items i WHERE i.queue = q.queue AND i.state = 1)
        ELSE EXISTS (SELECT FROM {schema}.items i WHERE i.queue = q.queue AND i.state = 1 AND i.lane = ANY (q.lanes))
          OR EXISTS (SELECT FROM {schema}.items i
            WHERE i.queue = q.queue AND i.state = 1 AND i.fallback_on AND i.fallback_lane = ANY (q.lanes))
      END;
    END IF;
    r := q.r;
    id := NULL;
    turn := NULL;
    next_in := CASE WHEN more AND got >= q.amount THEN 0 WHEN more THEN ${LOCKED_RETRY_MS}
      WHEN alarm IS NOT NULL THEN greatest(alarm - v_now, ${LOCKED_RETRY_MS}) END;
    RETURN NEXT;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION {schema}.lanes(p_queue text) RETURNS TABLE (lane text, ready bigint) LANGUAGE plpgsql ${BY_KEY} AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {schema}.now_ms();
  found_lanes text[];
  most integer;
BEGIN
  IF {schema}.first_alarm(p_queue) <= v_now THEN
    PERFORM {schema}.ring(p_queue, v_now);
  END IF;
  found_lanes := {schema}.lanes_from(p_queue, NULL, 2147483647);
  most := least(${READY_COUNT_MAX}, greatest(${READY_COUNT_MIN}, ${READY_COUNT_TOTAL} / greatest(cardinality(found_lanes), 1)));
  RETURN QUERY SELECT g.lane, least(c.n, most) FROM unnest(found_lanes) AS g(lane)
  CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
    (SELECT FROM {schema}.items i WHERE i.queue = p_queue AND i.state = 1 AND i.lane = g.lane LIMIT most)
    UNION ALL
    (SELECT FROM {schema}.items i
      WHERE i.queue = p_queue AND i.state = 1 AND i.fallback_on AND i.fallback_lane = g.lane LIMIT most)
  ) x) c WHERE c.n > 0;
END $$;

-- For the poll: which lanes have something, without counting.
CREATE OR REPLACE FUNCTION {schema}.ready_lanes(p_queue text, p_limit integer) RETURNS text[] LANGUAGE plpgsql ${BY_KEY} AS $$
DECLARE
  v_now bigint := {schema}.now_ms();
BEGIN
  IF {schema}.first_alarm(p_queue) <= v_now THEN
    PERFORM {schema}.ring(p_queue, v_now);
  END IF;
  RETURN {schema}.lanes_from(p_queue, NULL, p_limit);
END $$;
`
