import { BY_KEY } from './commit-function.ts'

/** The item `i` with another lease: `new` holds its times, then when it expires and its state. */
function next(leasedUntil: string, runAt: string, deliveries: string): string {
  return `
    CROSS JOIN LATERAL (SELECT ${leasedUntil} AS leased_until, ${runAt} AS run_at, ${deliveries} AS deliveries) AS new
    CROSS JOIN LATERAL (SELECT {schema}.expiry_of(new.leased_until, i.settle_at, i.unclaimed_at, new.run_at, new.deliveries)
      AS at) AS expiry
    CROSS JOIN LATERAL (SELECT {schema}.state_of(v_now, i.due_at, new.leased_until, expiry.at, i.closing) AS state) AS now`
}

/** Changes of leases: renewed, handed back, or ended with the process that held them. */
export const LEASE_FUNCTIONS = `
CREATE FUNCTION {schema}.renew(p_refs json) RETURNS TABLE (n integer, lane text, ready boolean)
LANGUAGE plpgsql ${BY_KEY} AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {schema}.now_ms();
  places tid[];
  numbers integer[];
  leases bigint[];
BEGIN
  SELECT array_agg(i.place), array_agg(r.n), array_agg(r.l) INTO places, numbers, leases
  FROM json_to_recordset(p_refs) AS r(n integer, q text, i text, t bigint, l bigint)
  CROSS JOIN LATERAL (
    SELECT x.ctid AS place FROM {schema}.items x WHERE x.queue = r.q AND x.id = r.i AND x.token = r.t FOR UPDATE
  ) i WHERE r.t <> 0;
  IF places IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY
  WITH held AS MATERIALIZED (
    SELECT r.n, r.l <= 0 AS back, i.ctid AS place, new.leased_until, new.run_at, new.deliveries, expiry.at AS expiry, now.state,
      {schema}.alarm_of(v_now, now.state, i.due_at, new.leased_until, expiry.at, i.fallback_at) AS alarm_at
    FROM unnest(places, numbers, leases) AS r(place, n, l) JOIN {schema}.items i ON i.ctid = r.place
    ${next(
      'v_now + greatest(r.l, 0)',
      'CASE WHEN r.l > 0 OR i.closing THEN i.run_at END',
      'i.deliveries - CASE WHEN r.l <= 0 AND NOT i.closing THEN 1 ELSE 0 END',
    )}
  )
  UPDATE {schema}.items i SET leased_until = h.leased_until, run_at = h.run_at, deliveries = h.deliveries, state = h.state,
    expired_at = h.expiry,
    token = CASE WHEN h.back THEN 0 ELSE i.token END,
    holder = CASE WHEN h.back THEN NULL ELSE i.holder END,
    session = CASE WHEN h.back THEN NULL ELSE i.session END,
    fallback_on = CASE WHEN h.state = 1 THEN coalesce(i.fallback_at <= v_now, false) ELSE i.fallback_on END,
    -- An alarm that is too early costs one look; to move it with every sign of life would cost an index entry each time.
    alarm_at = CASE WHEN i.state = h.state AND i.alarm_at <= h.alarm_at THEN i.alarm_at ELSE h.alarm_at END
  FROM held h WHERE i.ctid = h.place
  RETURNING h.n, i.lane::text, i.state = 1;
END $$;

-- Ends what a process had in its own hands. How often it was handed out stays.
CREATE FUNCTION {schema}.end_session(p_session bigint) RETURNS TABLE (queue text, lane text)
LANGUAGE plpgsql ${BY_KEY} AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {schema}.now_ms();
  places tid[];
BEGIN
  DELETE FROM {schema}.sessions x WHERE x.id = p_session;
  SELECT array_agg(i.place) INTO places FROM (
    SELECT x.ctid AS place FROM {schema}.items x WHERE x.session = p_session ORDER BY x.queue, x.id FOR UPDATE
  ) i;
  IF places IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY
  WITH held AS MATERIALIZED (
    SELECT i.ctid AS place, new.leased_until, new.run_at, expiry.at AS expiry, now.state,
      {schema}.alarm_of(v_now, now.state, i.due_at, new.leased_until, expiry.at, i.fallback_at) AS alarm_at
    FROM unnest(places) AS h(place) JOIN {schema}.items i ON i.ctid = h.place
    ${next('least(i.leased_until, v_now)', 'CASE WHEN i.closing THEN i.run_at END', 'i.deliveries')}
  ), ended AS (
    UPDATE {schema}.items i SET token = 0, holder = NULL, session = NULL, leased_until = h.leased_until, run_at = h.run_at,
      state = h.state, expired_at = h.expiry, alarm_at = h.alarm_at, fallback_on = coalesce(i.fallback_at <= v_now, false)
    FROM held h WHERE i.ctid = h.place
    RETURNING i.queue, i.lane, i.state
  )
  SELECT DISTINCT e.queue::text, e.lane::text FROM ended e WHERE e.state = 1;
END $$;

-- A sign of life; whoever gave none for long is ended by the first who notices. Gives back how many others there are.
CREATE FUNCTION {schema}.heartbeat(p_session bigint, p_instance text, p_alive_ms integer)
RETURNS TABLE (queue text, lane text, others bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  dead bigint;
BEGIN
  INSERT INTO {schema}.sessions AS x (id, instance, alive_until)
  VALUES (p_session, p_instance, clock_timestamp() + p_alive_ms * interval '1 millisecond')
  ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until;
  FOR dead IN
    SELECT x.id FROM {schema}.sessions x WHERE x.alive_until < clock_timestamp() AND x.id <> p_session
    ORDER BY x.id LIMIT 10 FOR UPDATE SKIP LOCKED
  LOOP
    RETURN QUERY SELECT e.queue, e.lane, NULL::bigint FROM {schema}.end_session(dead) AS e;
  END LOOP;
  RETURN QUERY SELECT NULL::text, NULL::text, count(*) FROM {schema}.sessions x WHERE x.id <> p_session;
END $$;

-- A process that starts under the name of an earlier one ends it: it is known to be dead.
CREATE FUNCTION {schema}.begin_session(p_instance text, p_alive_ms integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  begun bigint := nextval('{schema}.session_ids');
  dead bigint;
BEGIN
  FOR dead IN SELECT x.id FROM {schema}.sessions x WHERE x.instance = p_instance ORDER BY x.id FOR UPDATE LOOP
    PERFORM {schema}.end_session(dead);
  END LOOP;
  PERFORM {schema}.heartbeat(begun, p_instance, p_alive_ms);
  RETURN begun;
END $$;
`
