/**
 * The functions that the client calls. `keys[1]` is the prefix of all keys, `keys[2]` the locks if the namespace has
 * several shards. `args[1]` is the clock of a test, or empty for the server's clock; `args[2]` is the request, as
 * MessagePack. Bodies follow it unchanged.
 */
export const COMMANDS = String.raw`
-- Members of a lane that are read at a time.
local PAGE = 32
-- How long a record is that a claim brings along, and all of them together.
local BROUGHT_MAX, BROUGHT_BYTES_MAX = 16384, 262144

local function now(keys, args)
  return now_of(args[1])
end

local function read(keys, args)
  local kind, id = unpack(asked(args))
  local k = keys[1] .. ':r:' .. kind .. ':'
  local found = call('HMGET', k .. 'record', 'h:' .. id, 'b:' .. id)
  local head = found[1] and unpack_value(found[1])
  if not head or head[EXPIRES_AT] <= now_of(args[1]) then return false end
  return { head[VERSION], found[2] }
end

local function list(keys, args)
  local kind, owner, statuses, name, before, from, search, limit, most, bytes_max = unpack(asked(args))
  local now = now_of(args[1])
  local k = keys[1] .. ':r:' .. kind .. ':'
  local ids = page_of(sources_of(k, owner, statuses, name), before, from, most)
  if #ids == 0 then return { '' } end
  local wanted = {}
  for _, status in ipairs(statuses or {}) do wanted[status] = true end
  local heads = call('HMGET', k .. 'record', fields_of('h:', ids))
  local texts = search and call('HMGET', k .. 'record', fields_of('t:', ids))
  -- Where the next page goes on; nothing when this was the last one.
  local cursor = #ids == most and ids[#ids] or ''
  local found, versions, bytes = {}, {}, 0
  for i, id in ipairs(ids) do
    local head = heads[i] and unpack_value(heads[i])
    if head and head[EXPIRES_AT] > now
      and (not owner or head[OWNER] == owner)
      and (not statuses or wanted[head[STATUS]])
      and (not name or head[NAME] == name)
      and (not search or (texts[i] and string.find(texts[i], search, 1, true))) then
      found[#found + 1] = id
      versions[#versions + 1] = head[VERSION]
      if #found == limit then
        cursor = ''
        break
      end
      if bytes_max then bytes = bytes + call('HSTRLEN', k .. 'record', 'b:' .. id) end
      if bytes_max and bytes >= bytes_max then
        cursor = id
        break
      end
    end
  end
  local reply = { cursor }
  if #found == 0 then return reply end
  local bodies = call('HMGET', k .. 'record', fields_of('b:', found))
  for i, id in ipairs(found) do
    reply[#reply + 1] = id
    reply[#reply + 1] = versions[i]
    reply[#reply + 1] = bodies[i]
  end
  return reply
end

-- Nothing while there is more to clear away than one call does.
local function counts(keys, args)
  local kind, owner = unpack(asked(args))
  if sweep(keys[1], now_of(args[1]), 500) then return false end
  return call('HGETALL', keys[1] .. ':r:' .. kind .. ':count' .. (owner and ':' .. owner or ''))
end

local function peek(keys, args)
  local queue, ids = unpack(asked(args))
  local q = keys[1] .. ':q:' .. queue .. ':'
  local now = now_of(args[1])
  local reply = {}
  if #ids == 0 then return reply end
  local heads = call('HMGET', q .. 'item', fields_of('h:', ids))
  local bodies = call('HMGET', q .. 'item', fields_of('b:', ids))
  for i = 1, #ids do
    local head = heads[i] and head_of(heads[i])
    local is_held = head and head[TOKEN] ~= 0 and head[UNTIL] > now
    reply[2 * i - 1] = head and pack({
      head[LANE], head[PRIORITY], head[COUNT], math.max(0, head[DUE] - now),
      is_held and head[TOKEN], head[HOLDER], head[UNTIL] - now,
    })
    reply[2 * i] = bodies[i]
  end
  return reply
end

-- One page of those who are in named hands; first the cursor of the next.
local function held(keys, args)
  local queue, cursor = unpack(asked(args))
  local q, now = keys[1] .. ':q:' .. queue .. ':', now_of(args[1])
  local page = call('ZSCAN', q .. 'lease', cursor, 'COUNT', 200)
  local reply = { page[1] }
  for i = 1, #page[2], 2 do
    local id = page[2][i]
    local head = load(q, id)
    if head and head[STATE] == HELD and head[HOLDER] and head[UNTIL] > now then reply[#reply + 1] = id end
  end
  return reply
end

local function lanes(keys, args)
  local q = keys[1] .. ':q:' .. asked(args)[1] .. ':'
  if advance(q, now_of(args[1])) then return false end
  local reply = {}
  for i, lane in ipairs(call('ZRANGE', q .. 'row', 0, -1)) do
    reply[2 * i - 1] = lane
    reply[2 * i] = call('ZCARD', q .. 'lane:' .. lane)
  end
  return reply
end

-- The item of a lane's member, if a claim may have it; or that a transaction has locked it.
local function candidate(q, lane, member, head, now, locks)
  local id = string.sub(member, SEQ_LENGTH + 1)
  if not head then
    quit(q, lane, member)
  elseif expires_at(head) <= now then
    expire(q, id, head, now)
    save(q, id, head)
  elseif locks and is_locked(locks, q, id) then return nil, nil, true
  else return id, head end
end

-- The heads of the items that these members of a lane stand for.
local function heads_of(q, members)
  if #members == 0 then return {} end
  local ids, heads = {}, {}
  for i, member in ipairs(members) do ids[i] = string.sub(member, SEQ_LENGTH + 1) end
  for i, raw in ipairs(call('HMGET', q .. 'item', fields_of('h:', ids))) do
    heads[i] = raw and head_of(raw)
  end
  return heads
end

-- The records that the items are named after, each once: its version and its body. Nothing for what is large.
local function add_records(base, kind, reply, ids, now)
  if #ids == 0 then return end
  local stems, fields, places = {}, {}, {}
  for _, id in ipairs(ids) do
    local stem = string.match(id, '^[^.]+')
    if stem and not places[stem] then
      stems[#stems + 1] = stem
      places[stem] = #fields + 1
      fields[#fields + 1] = 'h:' .. stem
      fields[#fields + 1] = 'b:' .. stem
    end
  end
  local found = {}
  for from = 1, #fields, ARGS_MAX do
    local last = math.min(from + ARGS_MAX - 1, #fields)
    for i, value in ipairs(call('HMGET', base .. ':r:' .. kind .. ':record', unpack(fields, from, last))) do
      found[from + i - 1] = value
    end
  end
  local bytes = 0
  for _, stem in ipairs(stems) do
    local raw, body = found[places[stem]], found[places[stem] + 1]
    local head = raw and body and #body <= BROUGHT_MAX and bytes + #body <= BROUGHT_BYTES_MAX and unpack_value(raw)
    if head and head[EXPIRES_AT] > now then
      bytes = bytes + #body
      reply[#reply + 1] = stem
      reply[#reply + 1] = head[VERSION]
      reply[#reply + 1] = body
    end
  end
end

local function claim(keys, args)
  local queue, names, limit, lease_ms, holder, instance, brings, picks, stride, rest = unpack(asked(args))
  local base, now, locks = keys[1], now_of(args[1]), locks_of(keys)
  local q = base .. ':q:' .. queue .. ':'
  local more = advance(q, now)
  local next_token = token_source(base, now, limit, stride, rest)
  local reply, ids, is_blocked = { 0 }, {}, false
  -- What was taken since the lanes were last read: who leaves which lane, and the new heads.
  local leaving, saved = {}, {}

  local function leave(lane, member)
    local members = table_of(leaving, lane)
    members[#members + 1] = member
  end

  -- Before lanes are read again, and at the end.
  local function write_taken()
    for lane, members in pairs(leaving) do quit_all(q, lane, members) end
    write_members('HSET', q .. 'item', saved)
    leaving, saved = {}, {}
  end

  local function take(id, head)
    leave(head[LANE], head[SEQ] .. id)
    if head[BACK_ON] then leave(head[BACK_LANE], head[SEQ] .. id) end
    head[TOKEN] = next_token()
    head[HOLDER] = holder
    head[INSTANCE] = not holder and instance
    head[CLOSER] = false
    head[COUNT] = head[COUNT] + 1
    if head[RUN_MS] then head[RUN_AT] = now + head[RUN_MS] end
    hold(q, id, head, HELD, now + lease_ms)
    watch(q, id, head)
    saved[#saved + 1] = 'h:' .. id
    saved[#saved + 1] = pack(head)
    ids[#ids + 1] = id
    reply[3 * #ids - 1] = lease_reply(head, now, stride)
  end

  -- Takes the item of a lane's member if it can be had; true if a lock is in the way.
  local function try(lane, member, found)
    local id, head, blocked = candidate(q, lane, member, found, now, locks)
    if id then take(id, head) end
    is_blocked = blocked or is_blocked
    return blocked
  end

  local function take_in_turn()
    while #ids < limit do
      local row = call('ZRANGE', q .. 'row', 0, 1)
      local lane = row[1]
      if not lane then return false end
      -- A lane that is alone need not share, nor go to the end of the row.
      local last = row[2] and 0 or math.min(limit - #ids, PAGE) - 1
      local members = call('ZRANGE', q .. 'lane:' .. lane, 0, last)
      local heads = heads_of(q, members)
      for i, member in ipairs(members) do
        local before = #ids
        if try(lane, member, heads[i]) then return true end
        if #ids > before and (row[2] or stride) then
          call('ZADD', q .. 'row', 'XX', call('INCR', q .. 'turn'), lane)
        end
      end
      write_taken()
    end
    return call('EXISTS', q .. 'row') == 1
  end

  -- The best one of each lane that is named, in turns that count in all shards.
  local function take_picks()
    for _, pick in ipairs(picks) do
      local lane, before = pick[1], #ids
      repeat
        local members = call('ZRANGE', q .. 'lane:' .. lane, 0, 0)
        local member = members[1]
        if member and try(lane, member, heads_of(q, members)[1]) then return true end
        write_taken()
      until not member or #ids > before
      if #ids > before then call('ZADD', q .. 'row', 'XX', pick[2], lane) end
      raise(q .. 'turn', pick[2])
    end
    return call('EXISTS', q .. 'row') == 1
  end

  local function take_best()
    local firsts, pages = {}, {}
    -- Lanes are read some members at a time. What stands in two lanes is the first of both when its turn comes.
    local function look(i)
      local page = pages[i]
      if not page or (page.at > #page.members and page.has_more) then
        write_taken()
        local last = math.min(limit - #ids, PAGE - 1)
        local found = call('ZRANGE', q .. 'lane:' .. names[i], 0, last, 'WITHSCORES')
        page = { at = 1, members = {}, ranks = {}, has_more = #found == 2 * (last + 1) }
        for at = 1, #found, 2 do
          page.members[#page.members + 1] = found[at]
          page.ranks[#page.ranks + 1] = tonumber(found[at + 1])
        end
        page.heads = heads_of(q, page.members)
        pages[i] = page
      end
      local at = page.at
      local member = page.members[at]
      page.at = at + 1
      firsts[i] = member and { member, page.ranks[at], string.sub(member, 1, SEQ_LENGTH), page.heads[at] } or false
    end
    for i = 1, #names do look(i) end
    while true do
      local best = nil
      for i = 1, #names do
        local a, b = firsts[i], best and firsts[best]
        if a and (not b or a[2] < b[2] or (a[2] == b[2] and tonumber(a[3], 16) < tonumber(b[3], 16))) then best = i end
      end
      if not best then return false end
      if #ids == limit then return true end
      local member = firsts[best][1]
      if try(names[best], member, firsts[best][4]) then return true end
      for i = 1, #names do
        if firsts[i] and firsts[i][1] == member then look(i) end
      end
    end
  end

  local has_more
  if picks then has_more = take_picks()
  elseif names then has_more = take_best()
  else has_more = take_in_turn() end
  write_taken()
  if not has_more and not more then reply[1] = wait_of(q, now) end
  if is_blocked then reply[1] = BLOCKED end
  add_bodies(q, reply, ids)
  if brings then add_records(base, brings, reply, ids, now) end
  return reply
end

local function claim_expired(keys, args)
  local queue, limit, lease_ms, instance, stride, rest = unpack(asked(args))
  local base, now, locks = keys[1], now_of(args[1]), locks_of(keys)
  local q = base .. ':q:' .. queue .. ':'
  sweep(base, now, 100)
  local more = advance(q, now)
  local next_token = token_source(base, now, limit, stride, rest)
  local reply, ids = { 0 }, {}
  for _, id in ipairs(limit > 0 and call('ZRANGE', q .. 'over', 0, limit - 1) or {}) do
    if locks and is_locked(locks, q, id) then
      reply[1] = BLOCKED
      return add_bodies(q, reply, ids)
    end
    local head = load(q, id)
    depart(q, id, head)
    head[TOKEN] = next_token()
    head[HOLDER] = false
    head[INSTANCE] = instance
    head[CLOSER] = true
    hold(q, id, head, CLOSING, now + lease_ms)
    save(q, id, head)
    ids[#ids + 1] = id
    reply[3 * #ids - 1] = lease_reply(head, now, stride)
  end
  if not more and call('EXISTS', q .. 'over') == 0 then reply[1] = wait_of(q, now) end
  return add_bodies(q, reply, ids)
end

local function prolong(q, id, head, till, now)
  head[UNTIL] = till
  if head[CLOSER] then
    depart(q, id, head)
    hold(q, id, head, CLOSING, till)
  elseif expires_at(head) > now then
    if head[STATE] == READY then depart(q, id, head) end
    hold(q, id, head, HELD, till)
  elseif head[STATE] == READY then
    -- The lease had ended before the run was out of time, and covers that moment now.
    expire(q, id, head, now)
  end
end

local function hand_back(q, id, head, now)
  head[TOKEN] = 0
  head[HOLDER] = false
  head[INSTANCE] = false
  head[UNTIL] = now
  if not head[CLOSER] then
    head[COUNT] = head[COUNT] - 1
    head[RUN_AT] = INF
  end
  if expires_at(head) <= now then
    if head[STATE] ~= EXPIRED then expire(q, id, head, now) end
    return
  end
  if head[STATE] ~= READY then on_due(q, id, head, now) end
  watch(q, id, head)
end

local function renew(keys, args)
  local refs, lease_ms, origin = unpack(asked(args))
  local base, now, locks = keys[1], now_of(args[1]), locks_of(keys)
  local reply, hints, advanced = {}, { origin }, {}
  for i, ref in ipairs(refs) do
    if not advanced[ref[1]] then advance(base .. ':q:' .. ref[1] .. ':', now) end
    advanced[ref[1]] = true
    local head, q = find(base, ref)
    reply[i] = 0
    if head and locks and is_locked(locks, q, ref[2]) then reply[i] = BLOCKED
    elseif head then
      if lease_ms > 0 then prolong(q, ref[2], head, now + lease_ms, now) else hand_back(q, ref[2], head, now) end
      save(q, ref[2], head)
      reply[i] = 1
      if head[STATE] == READY then
        reply[i] = head[LANE]
        hints[#hints + 1] = ref[1]
        hints[#hints + 1] = head[LANE]
      end
    end
  end
  if #hints > 1 then publish(base, hints) end
  return reply
end

-- Ends the leases in the hands of those whose names begin so: those in force ("lease"), or what has run out of time in such
-- hands ("over"). One page of them; gives the cursor of the next.
local function release(keys, args)
  local queue, beginning, cursor, set = unpack(asked(args))
  local base, now, locks = keys[1], now_of(args[1]), locks_of(keys)
  local q = base .. ':q:' .. queue .. ':'
  local page = call('ZSCAN', q .. set, cursor, 'COUNT', 200)
  local hints = { '' }
  for i = 1, #page[2], 2 do
    local id = page[2][i]
    local head = load(q, id)
    local is_ours = head and head[INSTANCE] and string.sub(head[INSTANCE], 1, #beginning) == beginning
    -- What a transaction has locked is free when its lease ends.
    if is_ours and not (locks and is_locked(locks, q, id)) then
      head[TOKEN] = 0
      head[INSTANCE] = false
      head[UNTIL] = now
      if not head[CLOSER] then head[RUN_AT] = INF end
      on_lease_end(q, id, head, now)
      if head[STATE] == READY then watch(q, id, head) end
      save(q, id, head)
      if head[STATE] == READY then
        hints[#hints + 1] = queue
        hints[#hints + 1] = head[LANE]
      end
    end
  end
  if #hints > 1 then publish(base, hints) end
  return page[1]
end
`
