import { AGEING_MS } from '@impresario/core'

/**
 * The part of the library that keeps the items of the queues. All keys of a queue begin with `q`:
 *
 * | key | what |
 * |---|---|
 * | `item` | hash: `h:<id>` is what scripts need of an item (below), `b:<id>` its payload, which they never open |
 * | `lane:<lane>` | sorted set of what a claim of this lane can get: score is the rank, the member is `<sequence><id>` |
 * | `row` | the lanes that are not empty, by the turn in which each was served last; `turn` counts these |
 * | `clock` | by moment: `d<id>` is due, `a<id>` gets its second lane or may be out of time |
 * | `lease` | by the moment when the lease ends |
 * | `over` | what has expired and waits for `claimExpired` |
 *
 * An item is `waiting` (in `clock`) → `ready` (in its lane, and in its second lane once the fallback has begun) → `held` (in
 * `lease`) → `ready` when the lease ends. Any of these → `expired` (in `over`) when its time is up; then `closing` (in
 * `lease`) while whoever claimed the expiry holds it, and `expired` again when that lease ends. What an item is at a moment
 * follows from its times; `advance` brings the sets up to that moment, at most so many items for each call.
 */
export const ITEMS = String.raw`
local INF = 1 / 0
local STATE, TOKEN, UNTIL, HOLDER, INSTANCE, COUNT, CLOSER, RUN_AT, BACK_ON, LANE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local PRIORITY, DUE, RANK, SEQ, BACK_LANE, BACK_AT, SETTLE_AT, FIRST_AT, RUN_MS, ALARM = 11, 12, 13, 14, 15, 16, 17, 18, 19, 20
local WAITING, READY, HELD, EXPIRED, CLOSING = 1, 2, 3, 4, 5
local SEQ_LENGTH = 12

-- What the server has for functions only while one runs. A local is found at once, where a global's field takes two looks.
local call, pack, unpack_value, unpack_limit

local function running(run)
  return function(keys, args)
    call, pack = redis.call, cmsgpack.pack
    unpack_value, unpack_limit = cmsgpack.unpack, cmsgpack.unpack_limit
    return run(keys, args)
  end
end

-- How many fields the head of an item has, and the bytes before the first of them in MessagePack.
local HEAD_FIELDS, HEAD_START = 20, 3

-- While several calls are worked on as one: the moment that all of them have, and what is written and told at their end.
local bundle = nil
-- What one command is given at most.
local ARGS_MAX = 1000

local function new_bundle(origin)
  return { hints = { origin }, told = {}, counts = {}, cells = {}, sets = {}, lanes = {}, sweeps = 0 }
end

-- The question of a call, which a bundle has read already.
local function asked(args)
  local question = args[2]
  return type(question) == 'table' and question or unpack_value(question)
end

-- A list without its first value, in a table of the right size: half of what a table costs that grows.
local function tail(_, ...)
  return { ... }
end

-- The same, with the first value before it: where the next value of a text begins.
local function after(at, ...)
  return at, { ... }
end

-- Each command of a script costs more than what it does, so that one with many members is better than many commands.
local function write_members(command, key, args)
  local count = #args
  if count <= ARGS_MAX then
    if count > 0 then call(command, key, unpack(args, 1, count)) end
    return
  end
  for from = 1, count, ARGS_MAX do
    call(command, key, unpack(args, from, math.min(from + ARGS_MAX - 1, count)))
  end
end

-- The table that is kept under a key of another one.
local function table_of(tables, key)
  local found = tables[key]
  if not found then
    found = {}
    tables[key] = found
  end
  return found
end

-- Gives the member a place in a sorted set, or takes it out ("score" is false). In a bundle the last word on each member
-- counts, and is written at the end.
local function set_score(key, member, score)
  if bundle then
    local members = bundle.sets[key]
    if members then members[member] = score else bundle.sets[key] = { [member] = score } end
  elseif score then call('ZADD', key, score, member)
  else call('ZREM', key, member) end
end

local function write_sets(sets)
  for key, members in pairs(sets) do
    local added, add_count, gone, gone_count = {}, 0, {}, 0
    for member, score in pairs(members) do
      if score then
        added[add_count + 1] = score
        added[add_count + 2] = member
        add_count = add_count + 2
      else
        gone_count = gone_count + 1
        gone[gone_count] = member
      end
    end
    write_members('ZADD', key, added)
    write_members('ZREM', key, gone)
    sets[key] = nil
  end
end

-- "members": rank and member in turn. A lane that was empty goes to the end of the row.
local function write_lane(q, lane, members)
  local key, added = q .. 'lane:' .. lane, 0
  for from = 1, #members, ARGS_MAX do
    added = added + call('ZADD', key, unpack(members, from, math.min(from + ARGS_MAX - 1, #members)))
  end
  if added > 0 and call('ZCARD', key) == added then
    call('ZADD', q .. 'row', call('INCR', q .. 'turn'), lane)
  end
end

-- What joins lanes in a bundle, in the order in which it came to them.
local function write_lanes()
  local lanes = bundle.lanes
  if #lanes == 0 then return end
  bundle.lanes = {}
  for _, one in ipairs(lanes) do write_lane(one[1], one[2], one[3]) end
end

-- For whoever is about to read one of these sets.
local function catch_up()
  if not bundle then return end
  write_lanes()
  write_sets(bundle.sets)
end

local function now_of(given)
  if given ~= '' then return tonumber(given) end
  if bundle and bundle.now then return bundle.now end
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if bundle then bundle.now = now end
  return now
end

-- In a bundle: a hint that goes out at its end, once.
local function tell(queue, lane)
  local told, hints = table_of(bundle.told, queue), bundle.hints
  if told[lane] then return end
  told[lane] = true
  hints[#hints + 1] = queue
  hints[#hints + 1] = lane
end

-- "hints": whose they are, then a queue and a lane in turn.
local function publish(base, hints)
  if not bundle then
    call('PUBLISH', base .. ':hints', pack(hints))
    return
  end
  bundle.hints[1] = bundle.hints[1] or hints[1]
  for i = 2, #hints, 2 do tell(hints[i], hints[i + 1]) end
end

local function head_of(raw)
  return tail(unpack_limit(raw, HEAD_FIELDS, HEAD_START))
end

local function load(q, id)
  local raw = call('HGET', q .. 'item', 'h:' .. id)
  return raw and head_of(raw)
end

local function save(q, id, head)
  call('HSET', q .. 'item', 'h:' .. id, pack(head))
end

local function in_queue_at(head)
  if head[COUNT] == 0 and head[FIRST_AT] < head[SETTLE_AT] then return head[FIRST_AT] end
  return head[SETTLE_AT]
end

-- When it expires if the lease is kept.
local function in_hand_at(head)
  return math.min(in_queue_at(head), head[RUN_AT])
end

-- When it expires as things stand: a run counts only while its lease lasts.
local function expires_at(head)
  local at = in_queue_at(head)
  if head[RUN_AT] < at and head[RUN_AT] <= head[UNTIL] then return head[RUN_AT] end
  return at
end

local function join(q, lane, head, id)
  if not bundle then return write_lane(q, lane, { head[RANK], head[SEQ] .. id }) end
  local lanes = bundle.lanes
  local last = lanes[#lanes]
  if not last or last[1] ~= q or last[2] ~= lane then
    last = { q, lane, {} }
    lanes[#lanes + 1] = last
  end
  local members = last[3]
  members[#members + 1] = head[RANK]
  members[#members + 1] = head[SEQ] .. id
end

local function quit_all(q, lane, members)
  if bundle then write_lanes() end
  local key = q .. 'lane:' .. lane
  write_members('ZREM', key, members)
  if call('EXISTS', key) == 0 then call('ZREM', q .. 'row', lane) end
end

local function quit(q, lane, member)
  quit_all(q, lane, { member })
end

-- Takes the item out of the set that its state has put it into.
local function depart(q, id, head)
  local state = head[STATE]
  if state == READY then
    quit(q, head[LANE], head[SEQ] .. id)
    if head[BACK_ON] then quit(q, head[BACK_LANE], head[SEQ] .. id) end
  elseif state == WAITING then set_score(q .. 'clock', 'd' .. id, false)
  elseif state == EXPIRED then call('ZREM', q .. 'over', id)
  else set_score(q .. 'lease', id, false) end
end

local function make_ready(q, id, head, now)
  head[STATE] = READY
  join(q, head[LANE], head, id)
  if head[BACK_AT] <= now then head[BACK_ON] = true end
  if head[BACK_ON] then join(q, head[BACK_LANE], head, id) end
end

local function hold(q, id, head, state, till)
  head[STATE] = state
  head[UNTIL] = till
  set_score(q .. 'lease', id, till)
end

local function expire(q, id, head, now)
  depart(q, id, head)
  if head[ALARM] < INF then set_score(q .. 'clock', 'a' .. id, false) end
  head[ALARM] = INF
  head[STATE] = EXPIRED
  call('ZADD', q .. 'over', math.min(expires_at(head), now), id)
end

-- The next moment at which something becomes of it without anybody's doing.
local function next_at(head, expiry)
  return head[BACK_ON] and expiry or math.min(expiry, head[BACK_AT])
end

-- Sees to it that an alarm rings in time. One that rings too early is set later when it rings: most items are settled before.
local function watch(q, id, head)
  local at = next_at(head, in_hand_at(head))
  if at < head[ALARM] then
    set_score(q .. 'clock', 'a' .. id, at)
    head[ALARM] = at
  end
end

local function remove(q, id, head)
  depart(q, id, head)
  if head[ALARM] < INF then set_score(q .. 'clock', 'a' .. id, false) end
  call('HDEL', q .. 'item', 'h:' .. id, 'b:' .. id)
end

local function on_due(q, id, head, now)
  depart(q, id, head)
  make_ready(q, id, head, now)
end

local function on_lease_end(q, id, head, now)
  if head[STATE] == CLOSING or expires_at(head) <= now then expire(q, id, head, now)
  else on_due(q, id, head, now) end
end

local function on_alarm(q, id, head, now)
  if expires_at(head) <= now then return expire(q, id, head, now) end
  if not head[BACK_ON] and head[BACK_AT] <= now then
    head[BACK_ON] = true
    if head[STATE] == READY then join(q, head[BACK_LANE], head, id) end
  end
  -- Claimed since the alarm was set, or out of its holder's hands before its run was out of time.
  local at = next_at(head, head[RUN_AT] > now and in_hand_at(head) or expires_at(head))
  set_score(q .. 'clock', 'a' .. id, at < INF and at)
  head[ALARM] = at
end

-- Whether what the clock was set for is still to come: of two moments that have passed, one may have settled the other.
local ACTS = {
  d = { on_due, function(head) return head[STATE] == WAITING end },
  a = { on_alarm, function(head) return head[ALARM] < INF end },
}

-- True if there is more to do than one call does.
local function advance(q, now)
  local most = 1000
  catch_up()
  local members = call('ZRANGE', q .. 'clock', '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  for _, member in ipairs(members) do
    local id = string.sub(member, 2)
    local head = load(q, id)
    local act = ACTS[string.sub(member, 1, 1)]
    if not head then set_score(q .. 'clock', member, false)
    elseif act[2](head) then
      act[1](q, id, head, now)
      save(q, id, head)
    end
  end
  catch_up()
  local ids = call('ZRANGE', q .. 'lease', '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  for _, id in ipairs(ids) do
    local head = load(q, id)
    if head then
      on_lease_end(q, id, head, now)
      save(q, id, head)
    else set_score(q .. 'lease', id, false) end
  end
  if bundle and #members + #ids > 0 then write_lanes() end
  return #members == most or #ids == most
end

-- Milliseconds until something may be different from now; -1 if there is nothing to come. Never zero, which means "now".
local function wait_of(q, now)
  local first = INF
  catch_up()
  for _, set in ipairs({ 'clock', 'lease' }) do
    local found = call('ZRANGE', q .. set, 0, 0, 'WITHSCORES')
    if found[2] then first = math.min(first, tonumber(found[2])) end
  end
  return first == INF and -1 or math.max(1, math.ceil(first - now))
end

-- "own": who has an item in its own hands from the beginning, where the item does not say it itself.
local function enqueue(base, item, body, seq, now, own)
  local queue, id, lane, priority, delay, back_lane, back_ms, settle_ms, first_ms, run_ms, token, lease_ms, holder, hands = unpack(item)
  if hands == true then hands = own end
  local q = base .. ':q:' .. queue .. ':'
  local old = load(q, id)
  if old then remove(q, id, old) end
  local due = now + delay
  local has_back = back_lane and back_lane ~= lane
  local head = {
    WAITING, 0, 0, false, false, 0, false, INF, false, lane,
    priority, due, due - priority * ${AGEING_MS}, string.format('%012x', seq), back_lane,
    has_back and due + back_ms or INF, settle_ms and due + settle_ms or INF, first_ms and due + first_ms or INF, run_ms, INF,
  }
  if token then
    head[TOKEN], head[HOLDER], head[INSTANCE], head[COUNT] = token, holder, hands, 1
    if run_ms then head[RUN_AT] = now + run_ms end
    hold(q, id, head, HELD, now + lease_ms)
  elseif due > now then set_score(q .. 'clock', 'd' .. id, due)
  else make_ready(q, id, head, now) end
  watch(q, id, head)
  call('HSET', q .. 'item', 'h:' .. id, pack(head), 'b:' .. id, body)
end

-- The item's head if this claim still names it: nobody has claimed, removed or replaced it since.
local function find(base, ref)
  local q = base .. ':q:' .. ref[1] .. ':'
  local head = ref[3] ~= 0 and load(q, ref[2])
  if head and head[TOKEN] == ref[3] then return head, q end
end

-- The same for a claim that is to write: what has expired in its hands is lost to it, noticed or not.
local function find_in_force(base, ref, now)
  local head, q = find(base, ref)
  if not head or head[STATE] == EXPIRED then return nil end
  if expires_at(head) <= now and not (head[STATE] == CLOSING and head[UNTIL] > now) then return nil end
  return head, q
end

-- Tokens begin anew with every millisecond, so that none repeats even if the server has lost its newest writes. Each of
-- several shards gives those of its own remainder.
local function token_source(base, now, most, stride, rest)
  local last
  return function()
    if not last then
      local floor = math.floor(math.floor(now) * 2048 / (stride or 1))
      last = call('INCRBY', base .. ':token', most) - most
      if last < floor then
        call('SET', base .. ':token', string.format('%.0f', floor + most))
        last = floor
      end
    end
    last = last + 1
    return stride and last * stride + rest or last
  end
end

-- What several shards gave is put in order by rank and sequence.
local function lease_reply(head, now, is_sharded)
  local at = in_hand_at(head)
  local left = at < INF and math.max(at - now, 0)
  local reply = { head[TOKEN], head[LANE], head[PRIORITY], head[COUNT], left }
  if is_sharded then reply[6], reply[7] = head[RANK], head[SEQ] end
  return pack(reply)
end

local function add_bodies(q, reply, ids)
  if #ids == 0 then return reply end
  local fields = {}
  for index, id in ipairs(ids) do fields[index] = 'b:' .. id end
  local bodies = call('HMGET', q .. 'item', unpack(fields))
  for index, id in ipairs(ids) do
    local at = 3 * index - 1
    reply[at + 1] = reply[at]
    reply[at] = id
    reply[at + 2] = bodies[index]
  end
  return reply
end
`
