/**
 * The part of the library that keeps records. All keys of a kind begin with `k`:
 *
 * | key | what |
 * |---|---|
 * | `record` | hash: `h:<id>` is version and facets (below), `b:<id>` the value, `t:<id>` what `search` looks in |
 * | `ids`, `owner:<owner>`, `status:<status>`, `name:<name>` | sorted sets of ids, in the order of their bytes |
 * | `count`, `count:<owner>` | hashes: how many records there are of a name and a status |
 *
 * `expiry` is one sorted set for all kinds. Records are not given to `PEXPIREAT`: a key that the server takes away by itself
 * leaves its indexes and counts behind, with nothing that says what they were. Whoever reads looks at the time in the head,
 * so that nothing is found after its end; commits and sweeps clear away what has expired; counts do so before they answer.
 */
export const RECORDS = String.raw`
local VERSION, EXPIRES_AT, OWNER, STATUS, NAME, HAS_TEXT = 1, 2, 3, 4, 5, 6
-- How many fields the head of a record has, and the bytes before the first of them in MessagePack.
local RECORD_FIELDS, RECORD_START = 6, 1

local function add_to_count(key, field, by)
  if by ~= 0 and call('HINCRBY', key, field, by) == 0 then call('HDEL', key, field) end
end

-- Several calls that are worked on as one mostly count the same: what they add is written once, at their end.
local function count_later(key, field, by)
  if not bundle then return add_to_count(key, field, by) end
  local fields = table_of(bundle.counts, key)
  fields[field] = (fields[field] or 0) + by
end

-- The field of a count: a name and a status.
local function cell_of(name, status)
  if not bundle then return pack({ name, status }) end
  local cells = table_of(bundle.cells, name)
  local cell = cells[status] or pack({ name, status })
  cells[status] = cell
  return cell
end

local function count(k, head, by)
  if not head or not head[STATUS] then return end
  local cell = cell_of(head[NAME], head[STATUS])
  local key = k .. 'count'
  count_later(key, cell, by)
  if head[OWNER] then count_later(key .. ':' .. head[OWNER], cell, by) end
end

local function move(stem, id, was, is)
  if was == is then return end
  if was then set_score(stem .. was, id, false) end
  if is then set_score(stem .. is, id, '0') end
end

local function index(k, id, old, new)
  move(k .. 'owner:', id, old and old[OWNER], new and new[OWNER])
  move(k .. 'status:', id, old and old[STATUS], new and new[STATUS])
  move(k .. 'name:', id, old and old[NAME], new and new[NAME])
end

local function load_record(k, id)
  local raw = call('HGET', k .. 'record', 'h:' .. id)
  return raw and tail(unpack_limit(raw, RECORD_FIELDS, RECORD_START))
end

local function drop(base, kind, id)
  local k = base .. ':r:' .. kind .. ':'
  local head = load_record(k, id)
  if not head then return end
  if head[EXPIRES_AT] < INF then set_score(base .. ':expiry', kind .. ':' .. id, false) end
  index(k, id, head, nil)
  count(k, head, -1)
  set_score(k .. 'ids', id, false)
  call('HDEL', k .. 'record', 'h:' .. id, 'b:' .. id, 't:' .. id)
end

-- "old": the head that is there, expired or not.
local function put(base, one, body, old, now)
  local kind, id, version, owner, status, name, text, expires_ms = unpack(one)
  local k = base .. ':r:' .. kind .. ':'
  if old and old[EXPIRES_AT] <= now then
    drop(base, kind, id)
    old = nil
  end
  local expires_at = expires_ms and now + expires_ms or INF
  local head = { version, expires_at, owner, status, name, text and true or false }
  if not old then set_score(k .. 'ids', id, '0') end
  index(k, id, old, head)
  if not old or old[OWNER] ~= owner or old[STATUS] ~= status or old[NAME] ~= name then
    count(k, old, -1)
    count(k, head, 1)
  end
  if old and old[HAS_TEXT] and not text then call('HDEL', k .. 'record', 't:' .. id) end
  if expires_ms then set_score(base .. ':expiry', kind .. ':' .. id, expires_at)
  elseif old and old[EXPIRES_AT] < INF then set_score(base .. ':expiry', kind .. ':' .. id, false) end
  local fields = { 'h:' .. id, pack(head), 'b:' .. id, body }
  if text then fields[5], fields[6] = 't:' .. id, text end
  call('HSET', k .. 'record', unpack(fields))
end

-- Clears away what has expired; true if there may be more.
local function sweep(base, now, most)
  catch_up()
  local names = call('ZRANGE', base .. ':expiry', '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  for _, name in ipairs(names) do
    local colon = string.find(name, ':', 1, true)
    drop(base, string.sub(name, 1, colon - 1), string.sub(name, colon + 1))
  end
  return #names == most
end

-- The heads that are there for each of the puts, once the drops are done; nothing if one of the puts does not follow on its own.
local function fitting(base, puts, drops, now)
  local dropped, heads = next(drops) and {}, {}
  for _, one in ipairs(drops) do dropped[one[1] .. ':' .. one[2]] = true end
  for i, one in ipairs(puts) do
    local is_dropped = dropped and dropped[one[1] .. ':' .. one[2]]
    local head = not is_dropped and load_record(base .. ':r:' .. one[1] .. ':', one[2])
    local stored = head and head[EXPIRES_AT] > now and head[VERSION] or 0
    if stored ~= one[3] - 1 then return nil end
    heads[i] = head
  end
  return heads
end

local function fields_of(kind, ids)
  local fields = {}
  for i, id in ipairs(ids) do fields[i] = kind .. id end
  return unpack(fields)
end

-- The sets of which one holds every record that the query asks for: the shortest of what its facets offer.
local function sources_of(k, owner, statuses, name)
  local best, length = { k .. 'ids' }, INF
  local function offer(keys)
    local sum = 0
    for _, key in ipairs(keys) do sum = sum + call('ZCARD', key) end
    if sum < length then best, length = keys, sum end
  end
  if owner then offer({ k .. 'owner:' .. owner }) end
  if name then offer({ k .. 'name:' .. name }) end
  if statuses then
    local keys = {}
    for i, status in ipairs(statuses) do keys[i] = k .. 'status:' .. status end
    offer(keys)
  end
  return best
end

-- The next ids of these sets together, greatest first. Bytes are compared one by one: "<" on strings asks the locale.
local function page_of(sources, before, from, most)
  local upper, lower = before and '(' .. before or '+', from and '[' .. from or '-'
  local function read(key) return call('ZRANGE', key, upper, lower, 'BYLEX', 'REV', 'LIMIT', 0, most) end
  if #sources == 1 then return read(sources[1]) end
  local function is_greater(a, b)
    for i = 1, math.min(#a, #b) do
      local x, y = string.byte(a, i), string.byte(b, i)
      if x ~= y then return x > y end
    end
    return #a > #b
  end
  local ids = {}
  for _, key in ipairs(sources) do
    for _, id in ipairs(read(key)) do ids[#ids + 1] = id end
  end
  table.sort(ids, is_greater)
  for i = #ids, most + 1, -1 do ids[i] = nil end
  return ids
end
`
