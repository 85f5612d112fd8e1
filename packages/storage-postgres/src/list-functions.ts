/**
 * Lists walk an index in the order of the ids and stop when the page is full. Without statistics of the table, PostgreSQL
 * expects few rows for any filter, reads all of them and sorts them: with a million jobs that took 0.9 s a page. Settings of
 * the function leave it only the plans that walk, whatever the statistics say.
 */
const IN_ORDER = `SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = off
  SET jit = off`

/** The index by status does not have finished records, and a plan must see a literal to know that it has all others. */
const OF_STATUS = `format(' AND r.status = %L AND r.status <> ''finished''', s.status)`

/**
 * `p_way` names the index that is walked: 'id', 'owner' or 'status' (any but 'finished'). The other filters are computed, so
 * that no other index is found for them.
 */
export const LIST_FUNCTIONS = `
CREATE FUNCTION {schema}.list_page(p_kind text, p_way text, p_owner text, p_statuses text[], p_name text, p_before text,
  p_from text, p_search text, p_limit integer) RETURNS TABLE (id text, version integer, data text)
LANGUAGE plpgsql ${IN_ORDER} AS $$
DECLARE
  v_where text := format('r.kind = %L AND (r.expires_at IS NULL OR r.expires_at > $8)', p_kind);
  v_text text;
BEGIN
  IF p_way = 'owner' THEN v_where := v_where || ' AND r.owner = $1';
  ELSIF p_owner IS NOT NULL THEN v_where := v_where || ' AND r.owner || '''' = $1'; END IF;
  IF p_way <> 'status' AND p_statuses IS NOT NULL THEN v_where := v_where || ' AND r.status || '''' = ANY ($2)'; END IF;
  IF p_name IS NOT NULL THEN v_where := v_where || ' AND r.name = $3'; END IF;
  IF p_before IS NOT NULL THEN v_where := v_where || ' AND r.id < $4'; END IF;
  IF p_from IS NOT NULL THEN v_where := v_where || ' AND r.id >= $5'; END IF;
  IF p_search IS NOT NULL THEN v_where := v_where || ' AND position($6 IN r.text) > 0'; END IF;
  v_text := 'SELECT r.id::text, r.version, r.data FROM {schema}.records r WHERE ' || v_where;
  IF p_way = 'status' THEN
    -- One page for each status, then the best of all: a rare status is found at once among millions of others.
    SELECT 'SELECT * FROM (' || string_agg('(' || v_text || ${OF_STATUS} || ' ORDER BY r.id DESC LIMIT $7)', ' UNION ALL ')
      || ') p ORDER BY p.id COLLATE "C" DESC LIMIT $7' INTO v_text FROM unnest(p_statuses) AS s(status);
  ELSE
    v_text := v_text || ' ORDER BY r.id DESC LIMIT $7';
  END IF;
  RETURN QUERY EXECUTE v_text
    USING p_owner, p_statuses, p_name, p_before, p_from, p_search, p_limit, {schema}.now_ms();
END $$;

-- The id at which so many records of the walk have been looked at; null where there are not so many.
CREATE FUNCTION {schema}.list_floor(p_kind text, p_way text, p_owner text, p_statuses text[], p_before text, p_from text,
  p_looks integer) RETURNS text LANGUAGE plpgsql ${IN_ORDER} AS $$
DECLARE
  v_text text := format('SELECT r.id FROM {schema}.records r WHERE r.kind = %L', p_kind);
  v_end text := ' ORDER BY r.id DESC OFFSET $4 LIMIT 1';
  v_id text;
BEGIN
  IF p_way = 'owner' THEN v_text := v_text || ' AND r.owner = $1'; END IF;
  IF p_before IS NOT NULL THEN v_text := v_text || ' AND r.id < $2'; END IF;
  IF p_from IS NOT NULL THEN v_text := v_text || ' AND r.id >= $3'; END IF;
  IF p_way = 'status' THEN
    SELECT 'SELECT max(f.id) FROM (' || string_agg('(' || v_text || ${OF_STATUS} || v_end || ')', ' UNION ALL ') || ') f'
      INTO v_text FROM unnest(p_statuses) AS s(status);
  ELSE
    v_text := v_text || v_end;
  END IF;
  EXECUTE v_text INTO v_id USING p_owner, p_before, p_from, p_looks - 1;
  RETURN v_id;
END $$;
`
