import { AGEING_MS } from '@impresario/core'

/**
 * The part of the library that a transfer uses: it reads the entries of a shard unchanged and writes such entries into
 * a shard while no instance uses it. It sends no hints.
 */
export const TRANSFER = String.raw`
-- Time, the greatest number of an item, and the counter of tokens.
local function outline(keys, args)
  local function number(name) return tonumber(call('GET', keys[1] .. name)) or 0 end
  return { now_of(args[1]), number(':seq'), number(':token') }
end

-- How many there are of each kind, expired or not, and in each queue.
local function tally(keys, args)
  local kinds, queues = unpack(asked(args))
  local reply = {}
  for _, kind in ipairs(kinds) do reply[#reply + 1] = call('ZCARD', keys[1] .. ':r:' .. kind .. ':ids') end
  for _, queue in ipairs(queues) do reply[#reply + 1] = call('HLEN', keys[1] .. ':q:' .. queue .. ':item') / 2 end
  return reply
end

-- The kinds of records that have expired and are still there, some at a time.
local function overdue(keys, args)
  local offset, most = unpack(asked(args))
  local kinds = {}
  local names = call('ZRANGE', keys[1] .. ':expiry', '-inf', now_of(args[1]), 'BYSCORE', 'LIMIT', offset, most)
  for i, name in ipairs(names) do kinds[i] = string.match(name, '^[^:]*') end
  return kinds
end

-- Who has something of a queue in its own hands.
local function hands(keys, args)
  local q = keys[1] .. ':q:' .. asked(args)[1] .. ':'
  local names = {}
  local ids = call('ZRANGE', q .. 'lease', '(' .. now_of(args[1]), '+inf', 'BYSCORE', 'LIMIT', 0, 1000)
  for _, id in ipairs(ids) do
    local head = load(q, id)
    if head and head[INSTANCE] then names[#names + 1] = head[INSTANCE] end
  end
  return names
end

-- Records of a kind in the order of their ids, without those that had expired: the last id that was looked at, or nothing at
-- the end, then id, head, value and text of each.
local function dump_records(keys, args)
  local kind, after, most, bytes, at = unpack(asked(args))
  local k = keys[1] .. ':r:' .. kind .. ':'
  local ids = call('ZRANGE', k .. 'ids', after and '(' .. after or '-', '+', 'BYLEX', 'LIMIT', 0, most)
  local reply, total = { '' }, 0
  for i, id in ipairs(ids) do
    total = total + call('HSTRLEN', k .. 'record', 'b:' .. id)
    if i > 1 and total > bytes then return reply end
    local found = call('HMGET', k .. 'record', 'h:' .. id, 'b:' .. id, 't:' .. id)
    if found[1] and unpack_value(found[1])[EXPIRES_AT] > at then
      local n = #reply
      reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = id, found[1], found[2], found[3] or ''
    end
    reply[1] = id
  end
  if #ids < most then reply[1] = '' end
  return reply
end

-- Every item is in one of these, by its state, and a ready one perhaps in its second lane as well.
local STAGES = {
  { 'clock', function(head) return head[STATE] == WAITING end },
  { 'lane', function(head, lane) return head[STATE] == READY and head[LANE] == lane end },
  { 'lease', function(head) return head[STATE] == HELD or head[STATE] == CLOSING end },
  { 'over', function(head) return head[STATE] == EXPIRED end },
}

-- Items of a queue: where to go on (the stage, which lane, how far into the set), then id, head and payload of each.
local function dump_items(keys, args)
  local queue, stage, row, offset, most, bytes = unpack(asked(args))
  local q = keys[1] .. ':q:' .. queue .. ':'
  local reply, total, looks = { stage, row, offset }, 0, 0
  -- False when the page is full.
  local function take(member, lane)
    if stage == 1 and string.sub(member, 1, 1) ~= 'd' then return true end
    local id = stage == 1 and string.sub(member, 2) or stage == 2 and string.sub(member, SEQ_LENGTH + 1) or member
    local found = call('HMGET', q .. 'item', 'h:' .. id, 'b:' .. id)
    if not found[1] or not STAGES[stage][2](unpack_value(found[1]), lane) then return true end
    total = total + #found[2]
    local n = #reply
    if n > 3 and total > bytes then return false end
    reply[n + 1], reply[n + 2], reply[n + 3] = id, found[1], found[2]
    return true
  end
  local is_full = false
  while STAGES[stage] and looks < most and not is_full do
    local lane = stage == 2 and call('ZRANGE', q .. 'row', row, row)[1]
    local key = stage ~= 2 and q .. STAGES[stage][1] or lane and q .. 'lane:' .. lane
    local wanted = most - looks
    local members = key and call('ZRANGE', key, offset, offset + wanted - 1) or {}
    for _, member in ipairs(members) do
      is_full = not take(member, lane)
      if is_full then break end
      offset = offset + 1
      looks = looks + 1
    end
    if not is_full and #members < wanted then
      offset = 0
      looks = looks + 1
      if lane then row = row + 1 else stage, row = stage + 1, 0 end
    end
  end
  reply[1], reply[2], reply[3] = STAGES[stage] and stage or 0, row, offset
  return reply
end

-- An item with all that has happened to it, in the set where it belongs now.
local function lodge(base, item, body, now)
  local queue, id, lane, priority, seq, due, back_lane, back_at, settle_at, first_at, run_ms, deliveries, token, holder, till,
    run_at, is_closed = unpack(item)
  local q = base .. ':q:' .. queue .. ':'
  local old = load(q, id)
  if old then remove(q, id, old) end
  local head = {
    WAITING, token, till, holder, false, deliveries, is_closed, run_at or INF, false, lane,
    priority, due, due - priority * ${AGEING_MS}, string.format('%012x', seq), back_lane,
    back_at or INF, settle_at or INF, first_at or INF, run_ms, INF,
  }
  local ends = expires_at(head)
  if ends <= now then
    head[STATE] = EXPIRED
    call('ZADD', q .. 'over', ends, id)
  elseif token ~= 0 and till > now then hold(q, id, head, HELD, till)
  elseif due > now then call('ZADD', q .. 'clock', due, 'd' .. id)
  else make_ready(q, id, head, now) end
  if head[STATE] ~= EXPIRED then watch(q, id, head) end
  call('HSET', q .. 'item', 'h:' .. id, pack(head), 'b:' .. id, body)
end

-- Lives of records count from the moment of the transfer; times of items are moments already.
local function load_page(keys, args)
  local at, puts, items = unpack(asked(args))
  local base, now, body, last = keys[1], now_of(args[1]), 3, 0
  for _, one in ipairs(puts) do
    put(base, one, args[body], load_record(base .. ':r:' .. one[1] .. ':', one[2]), at)
    body = body + 1
  end
  for _, one in ipairs(items) do
    lodge(base, one, args[body], now)
    last = math.max(last, one[5])
    body = body + 1
  end
  if last > 0 then raise(base .. ':seq', last) end
  return 1
end

local function raise_token(keys, args)
  raise(keys[1] .. ':token', asked(args)[1])
  return 1
end

-- Takes some of everything away; how many there were.
local function clear_some(keys, args)
  local kinds, queues, most = unpack(asked(args))
  local base, gone = keys[1], 0
  for _, kind in ipairs(kinds) do
    for _, id in ipairs(call('ZRANGE', base .. ':r:' .. kind .. ':ids', 0, most - 1)) do
      drop(base, kind, id)
      gone = gone + 1
    end
  end
  for _, queue in ipairs(queues) do
    local q = base .. ':q:' .. queue .. ':'
    local function clear(key, cut)
      for _, member in ipairs(call('ZRANGE', key, 0, most - 1)) do
        local id = string.sub(member, cut)
        local head = load(q, id)
        if head then remove(q, id, head) else call('ZREM', key, member) end
        gone = gone + 1
      end
    end
    for _, lane in ipairs(call('ZRANGE', q .. 'row', 0, most - 1)) do clear(q .. 'lane:' .. lane, SEQ_LENGTH + 1) end
    clear(q .. 'lease', 1)
    clear(q .. 'over', 1)
    clear(q .. 'clock', 2)
  end
  return gone
end
`
