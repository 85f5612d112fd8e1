import { AGEING_MS } from '@impresario/core'

/**
 * The tables.
 *
 * Pages are left partly empty, so that a row's next version fits on the same page and no index has to be updated (HOT):
 * a job's record is rewritten with every step, and its owner, status and name seldom change with it. Vacuum runs after
 * a fixed number of changes instead of a share of the table, because a queue replaces its rows many times a minute
 * however long it is. It always cleans the indexes of items too: the dead entries of finished items accumulate at the
 * head, where every claim begins.
 *
 * A claim and the end of an item change indexed columns and cannot be HOT. A renewal is HOT, because its alarm does not
 * change.
 */
export const TABLES = `
CREATE TABLE {schema}.records (
  kind text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  version integer NOT NULL,
  expires_at bigint,
  owner text COLLATE "C",
  status text COLLATE "C",
  name text COLLATE "C",
  text text COLLATE "C",
  data text NOT NULL,
  PRIMARY KEY (kind, id)
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX records_by_owner ON {schema}.records (kind, owner, id) WHERE owner IS NOT NULL;
CREATE INDEX records_by_status ON {schema}.records (kind, status, id) WHERE status <> 'finished';
CREATE INDEX records_by_expiry ON {schema}.records (expires_at) WHERE expires_at IS NOT NULL;

-- How many records there are. Each writer adds to rows of its own stripe, so that two seldom wait for each other.
CREATE TABLE {schema}.counts (
  kind text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  stripe smallint NOT NULL,
  n bigint NOT NULL,
  PRIMARY KEY (kind, status, owner, name, stripe)
) WITH (fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0);

-- What an item is at a moment follows from its times alone. The state and the alarm are kept beside them for the indexes:
-- whoever asks a queue first brings those up to date whose alarm has come (the function "ring").
-- 0 waits until it is due, 1 is ready, 2 is held, 3 has expired, 4 has expired and is being seen to.
CREATE TABLE {schema}.items (
  queue text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  rank double precision NOT NULL,
  priority double precision NOT NULL,
  token bigint NOT NULL DEFAULT 0,
  session bigint,
  due_at bigint NOT NULL,
  leased_until bigint NOT NULL DEFAULT 0,
  alarm_at bigint,
  expired_at bigint,
  settle_at bigint,
  unclaimed_at bigint,
  run_ms bigint,
  run_at bigint,
  fallback_at bigint,
  deliveries integer NOT NULL DEFAULT 0,
  state smallint NOT NULL,
  fallback_on boolean NOT NULL DEFAULT false,
  closing boolean NOT NULL DEFAULT false,
  lane text COLLATE "C" NOT NULL,
  fallback_lane text COLLATE "C",
  holder text,
  payload text NOT NULL,
  PRIMARY KEY (queue, id)
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 1000,
  vacuum_index_cleanup = on);
CREATE INDEX items_ready ON {schema}.items (queue, lane, rank, seq) WHERE state = 1;
CREATE INDEX items_fallback ON {schema}.items (queue, fallback_lane, rank, seq) WHERE state = 1 AND fallback_on;
CREATE INDEX items_alarm ON {schema}.items (queue, alarm_at) WHERE alarm_at IS NOT NULL;
CREATE INDEX items_expired ON {schema}.items (queue, expired_at) WHERE state = 3;
CREATE INDEX items_session ON {schema}.items (session) WHERE session IS NOT NULL;

-- Tokens never repeat. A group of commits takes one number and counts on from it for the order of its items.
CREATE SEQUENCE {schema}.tokens;
CREATE SEQUENCE {schema}.orders INCREMENT BY 100000;
CREATE SEQUENCE {schema}.session_ids;

-- The processes that use this storage. A lease without a holder ends with its process.
CREATE TABLE {schema}.sessions (
  id bigint PRIMARY KEY,
  instance text,
  alive_until timestamptz NOT NULL
) WITH (fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

CREATE TYPE {schema}.delta AS (kind text, status text, owner text, name text, n bigint);
`

/** Rules for the life of an item, as expressions that the planner can inline. */
export const ITEM_RULES = `
CREATE FUNCTION {schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT (extract(epoch FROM clock_timestamp())::double precision * 1000)::bigint
$$;

CREATE FUNCTION {schema}.rank_of(due_at bigint, priority double precision) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
  SELECT due_at - priority * ${AGEING_MS}
$$;

-- When it has expired or would, as things stand.
CREATE FUNCTION {schema}.expiry_of(
  leased_until bigint, settle_at bigint, unclaimed_at bigint, run_at bigint, deliveries integer
) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT least(settle_at, CASE WHEN deliveries = 0 THEN unclaimed_at END, CASE WHEN run_at <= leased_until THEN run_at END)
$$;

CREATE FUNCTION {schema}.state_of(
  t bigint, due_at bigint, leased_until bigint, expires_at bigint, closing boolean
) RETURNS smallint LANGUAGE sql IMMUTABLE AS $$
  SELECT (CASE
    WHEN expires_at <= t THEN CASE WHEN closing AND leased_until > t THEN 4 ELSE 3 END
    WHEN leased_until > t THEN 2
    WHEN due_at > t THEN 0
    ELSE 1 END)::smallint
$$;

-- When the state may change next. Never too late; a renewal leaves it too early, and the ring sets it right.
CREATE FUNCTION {schema}.alarm_of(
  t bigint, state smallint, due_at bigint, leased_until bigint, expires_at bigint, fallback_at bigint
) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE state
    WHEN 0 THEN least(due_at, expires_at)
    WHEN 1 THEN least(expires_at, CASE WHEN fallback_at > t THEN fallback_at END)
    WHEN 2 THEN least(leased_until, expires_at)
    WHEN 4 THEN leased_until
  END
$$;
`

/** Triggers of automations by their topics: an event finds its own among a hundred thousand. See `isIndexedByName`. */
export const NAME_INDEX = `
CREATE INDEX records_by_name ON {schema}.records (name, id) WHERE kind = 'subscription';
`
