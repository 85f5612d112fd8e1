/** The first step of a claim over several shards: asks which items each shard would give. It claims nothing. */
export const SURVEYS = String.raw`
-- For each lane that has something: its name, its turn, and one more of its best members than can be claimed, with their
-- ranks. First the time until there may be something else; zero if one call has not brought the queue up to now.
local function survey(keys, args)
  local queue, names, limit = unpack(asked(args))
  local q = keys[1] .. ':q:' .. queue .. ':'
  local now = now_of(args[1])
  local more = advance(q, now)
  local reply = { more and 0 or wait_of(q, now) }
  local function look(lane, turn, most)
    local found = call('ZRANGE', q .. 'lane:' .. lane, 0, most - 1, 'WITHSCORES')
    if #found > 0 then reply[#reply + 1] = { lane, turn, most, found } end
  end
  if names then
    for _, lane in ipairs(names) do look(lane, 0, limit + 1) end
  else
    local row = call('ZRANGE', q .. 'row', 0, math.max(64, limit) - 1, 'WITHSCORES')
    -- More than a fair share, should other lanes be short.
    local most = math.min(limit + 1, math.ceil(4 * (limit + 1) / math.max(1, #row)))
    for i = 1, #row, 2 do look(row[i], tonumber(row[i + 1]), most) end
  end
  return pack(reply)
end

-- What has expired: ids and moments, one more than can be claimed.
local function survey_expired(keys, args)
  local queue, limit = unpack(asked(args))
  local q = keys[1] .. ':q:' .. queue .. ':'
  local now = now_of(args[1])
  sweep(keys[1], now, 100)
  local more = advance(q, now)
  local found = call('ZRANGE', q .. 'over', 0, limit, 'WITHSCORES')
  return pack({ more and 0 or wait_of(q, now), found })
end

-- How long the item has been due that comes next in its lane: the longest of all lanes, or of one; -1 where there is none.
local function oldest(keys, args)
  local queue, only = unpack(asked(args))
  local q, now = keys[1] .. ':q:' .. queue .. ':', now_of(args[1])
  if advance(q, now) then return false end
  local due = INF
  for _, lane in ipairs(only and { only } or call('ZRANGE', q .. 'row', 0, -1)) do
    local first = call('ZRANGE', q .. 'lane:' .. lane, 0, 0)[1]
    local head = first and load(q, string.sub(first, SEQ_LENGTH + 1))
    if head and head[DUE] < due then due = head[DUE] end
  end
  return due == INF and -1 or math.max(0, now - due)
end
`
