import { BY_KEY } from './commit-function.ts'

/**
 * Reads records and items by their keys, several at a time. Planning a separate statement would cost more than the
 * read.
 */
export const READ_FUNCTIONS = `
CREATE FUNCTION {schema}.read_all(p_kinds text[], p_ids text[]) RETURNS TABLE (n bigint, version integer, data text)
LANGUAGE plpgsql ${BY_KEY} AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {schema}.now_ms();
BEGIN
  RETURN QUERY SELECT k.n, r.version, r.data FROM unnest(p_kinds, p_ids) WITH ORDINALITY AS k(kind, id, n)
  CROSS JOIN LATERAL (SELECT x.* FROM {schema}.records x WHERE x.kind = k.kind AND x.id = k.id OFFSET 0) r
  WHERE r.expires_at IS NULL OR r.expires_at > v_now;
END $$;

CREATE FUNCTION {schema}.peek_all(p_queues text[], p_ids text[])
RETURNS TABLE (n bigint, id text, lane text, priority double precision, payload text, deliveries integer, due_in bigint,
  token bigint, holder text, ends_in bigint) LANGUAGE plpgsql ${BY_KEY} AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {schema}.now_ms();
BEGIN
  RETURN QUERY SELECT k.n, i.id::text, i.lane::text, i.priority, i.payload, i.deliveries, i.due_at - v_now, i.token, i.holder,
    i.leased_until - v_now
  FROM unnest(p_queues, p_ids) WITH ORDINALITY AS k(queue, id, n)
  CROSS JOIN LATERAL (SELECT x.* FROM {schema}.items x WHERE x.queue = k.queue AND x.id = k.id OFFSET 0) i;
END $$;
`
