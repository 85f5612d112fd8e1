/**
 * The part of the library that writes batches: `commit` in one call if all the data is in one shard; otherwise `begin`,
 * `prepare`, `decide` and `finish` (see the README). `args[2]` describes the batch, its bodies follow.
 */
export const COMMITS = String.raw`
local NOTHING = {}

-- What a batch will write, by the names that locks have.
local function names_of(batch)
  local names = {}
  local function add(kind, list)
    for _, one in ipairs(list) do names[#names + 1] = kind .. one[1] .. ':' .. one[2] end
  end
  if batch.settle then add('q:', { batch.settle }) end
  add('q:', batch.removals)
  add('r:', batch.drops)
  add('r:', batch.puts)
  add('q:', batch.items)
  return names
end

local function batch_of(bytes)
  local settle, guard, removals, drops, puts, items, hints, floor, transaction = unpack(unpack_value(bytes))
  return {
    settle = settle, guard = guard, removals = removals, drops = drops, puts = puts, items = items, hints = hints,
    floor = floor, transaction = transaction,
  }
end

-- A batch as a bundle has it, from this place of a text on; first where it ends. "body" is the number of its first body.
local function batch_at(text, at, body, origin, hands)
  local queue, id, token, guard, rest, put_count, item_count
  at, queue, id, token, guard, rest, put_count, item_count = unpack_limit(text, 7, at)
  local puts, items = {}, {}
  for i = 1, put_count do at, puts[i] = after(unpack_limit(text, 8, at)) end
  for i = 1, item_count do at, items[i] = after(unpack_limit(text, 14, at)) end
  return at, {
    settle = queue and { queue, id, token }, guard = guard, removals = rest and rest[1] or NOTHING,
    drops = rest and rest[2] or NOTHING, puts = puts, items = items, hints = false, floor = rest and rest[3],
    body = body, hands = hands,
  }
end

-- The transactions whose locks are in the way, packed; nothing if none is.
local function holders_of(keys, batch)
  local locks = locks_of(keys)
  if not locks then return nil end
  local names = names_of(batch)
  if batch.guard then names[#names + 1] = 'q:' .. batch.guard[1] .. ':' .. batch.guard[2] end
  local found, seen = {}, {}
  for _, name in ipairs(names) do
    local id = call('HGET', locks, name)
    if id and not seen[id] then
      seen[id] = true
      found[#found + 1] = id
    end
  end
  return #found > 0 and pack(found) or nil
end

-- The heads of the records that the batch puts, and the item that it settles; nothing if one of its conditions does not hold.
local function conditions(base, batch, now)
  local settled, settled_q
  if batch.settle then
    settled, settled_q = find_in_force(base, batch.settle, now)
    if not settled then return nil end
  end
  if batch.guard and not find_in_force(base, batch.guard, now) then return nil end
  local heads = fitting(base, batch.puts, batch.drops, now)
  return heads, settled, settled_q
end

-- The first of so many numbers in a row, less one; all of them greater than "floor".
local function numbers(base, count, floor)
  local before = bundle and bundle.seq or tonumber(call('GET', base .. ':seq')) or 0
  before = math.max(before, floor or 0)
  if bundle then bundle.seq = before + count
  else call('SET', base .. ':seq', string.format('%.0f', before + count)) end
  return before
end

-- "places": the numbers of the items after "first", where they are not simply one after the other.
local function apply(base, batch, bodies, body, now, heads, settled, settled_q, first, places)
  if settled then remove(settled_q, batch.settle[2], settled) end
  for _, one in ipairs(batch.removals) do
    local q = base .. ':q:' .. one[1] .. ':'
    local head = load(q, one[2])
    if head then remove(q, one[2], head) end
  end
  for _, one in ipairs(batch.drops) do drop(base, one[1], one[2]) end
  local written, has_expiry = #batch.puts > 1 and {}, false
  for i, one in ipairs(batch.puts) do
    local old = heads[i]
    if written then
      local name = one[1] .. ':' .. one[2]
      if written[name] then old = load_record(base .. ':r:' .. one[1] .. ':', one[2]) end
      written[name] = true
    end
    put(base, one, bodies[body], old, now)
    has_expiry = has_expiry or one[8]
    body = body + 1
  end
  for i, one in ipairs(batch.items) do
    -- Nobody claims a signal that is due: that it is told is all of it.
    local is_kept = one[1] ~= 'signals' or one[5] > 0 or one[11]
    if is_kept then enqueue(base, one, bodies[body], first + (places and places[i] or i), now, batch.hands) end
    body = body + 1
    -- What is due and nobody's is told to all; a transaction brings its own hints.
    if bundle and not one[11] and one[5] <= 0 then tell(one[1], one[3]) end
  end
  -- Twice as many as a batch can add, so that what has expired never piles up.
  if has_expiry and bundle then bundle.sweeps, bundle.swept_at = bundle.sweeps + 2 * #batch.puts, now
  elseif has_expiry then sweep(base, now, 2 * #batch.puts) end
  if batch.hints then publish(base, batch.hints) end
end

-- A call of a bundle. Zero: a conflict. A text: the transactions that are in the way. Else committed, and the last number of an item here.
local function commit(keys, given, batch, bodies)
  local base, now = keys[1], now_of(given)
  local holders = keys[2] and holders_of(keys, batch)
  if holders then return holders end
  local heads, settled, settled_q = conditions(base, batch, now)
  if not heads then return 0 end
  local count = #batch.items
  local first = count > 0 and numbers(base, count, batch.floor) or 0
  apply(base, batch, bodies, batch.body, now, heads, settled, settled_q, first)
  return math.max(1, first + count)
end

-- In the home of a transaction: it may begin. The greatest number of an item here, -1 for a conflict.
local function begin(keys, args)
  local base = keys[1]
  local batch = batch_of(args[2])
  local holders = holders_of(keys, batch)
  if holders then return holders end
  if not conditions(base, batch, now_of(args[1])) then return -1 end
  local id, hands = unpack(batch.transaction)
  call('HSET', base .. ':open', id, 'p' .. hands)
  return tonumber(call('GET', base .. ':seq')) or 0
end

-- In another shard: everything is as the batch needs it, and stays so until the transaction ends. Answers as "begin" does.
local function prepare(keys, args)
  local base = keys[1]
  local batch = batch_of(args[2])
  local holders = holders_of(keys, batch)
  if holders then return holders end
  if not conditions(base, batch, now_of(args[1])) then return -1 end
  local id, names = batch.transaction[1], names_of(batch)
  for _, name in ipairs(names) do call('HSET', keys[2], name, id) end
  call('HSET', base .. ':part', id, pack(names))
  for i = 2, #args do call('RPUSH', base .. ':parcel:' .. id, args[i]) end
  return tonumber(call('GET', base .. ':seq')) or 0
end

-- In the home: the moment in which the transaction happens, if nobody has ended it and everything here is as it has to be.
local function decide(keys, args)
  local base, now = keys[1], now_of(args[1])
  local batch = batch_of(args[2])
  local id, _, total, places, shards = unpack(batch.transaction)
  if call('HEXISTS', base .. ':open', id) == 0 then return -1 end
  local holders = holders_of(keys, batch)
  local heads, settled, settled_q
  if not holders then heads, settled, settled_q = conditions(base, batch, now) end
  if not heads then
    call('HDEL', base .. ':open', id)
    return holders or 0
  end
  local first = numbers(base, total, batch.floor)
  apply(base, batch, args, 3, now, heads, settled, settled_q, first, places)
  call('HSET', base .. ':open', id, 'c' .. pack({ now, first, shards }))
  return { now, first, total }
end

local function unlock(keys, id, names)
  for _, name in ipairs(names) do
    if call('HGET', keys[2], name) == id then call('HDEL', keys[2], name) end
  end
  call('HDEL', keys[1] .. ':part', id)
  call('DEL', keys[1] .. ':parcel:' .. id)
end

-- In another shard, after the decision: writes what was prepared. A second time it does nothing.
local function finish(keys, args)
  local id, now, first = unpack(asked(args))
  local base = keys[1]
  local parcel = call('LRANGE', base .. ':parcel:' .. id, 0, -1)
  if #parcel == 0 then return 0 end
  local batch = batch_of(parcel[1])
  local places = batch.transaction[4]
  unlock(keys, id, names_of(batch))
  local dropped, heads = {}, {}
  for _, one in ipairs(batch.drops) do dropped[one[1] .. ':' .. one[2]] = true end
  for i, one in ipairs(batch.puts) do
    heads[i] = not dropped[one[1] .. ':' .. one[2]] and load_record(base .. ':r:' .. one[1] .. ':', one[2])
  end
  local settled, settled_q
  if batch.settle then settled, settled_q = find(base, batch.settle) end
  apply(base, batch, parcel, 2, now, heads, settled, settled_q, first, places)
  if #batch.items > 0 then raise(base .. ':seq', first + places[#places]) end
  return 1
end

-- In another shard: forgets what was prepared.
local function cancel(keys, args)
  local id = unpack(asked(args))
  local names = call('HGET', keys[1] .. ':part', id)
  if not names then return 0 end
  unlock(keys, id, unpack_value(names))
  return 1
end

-- In the home: nothing if the transaction is over or was ended, "p…" while it is undecided, "c…" when it is decided. An
-- undecided one is ended on request: whoever runs it cannot decide it any more.
local function status(keys, args)
  local id, is_ending = unpack(asked(args))
  local key = keys[1] .. ':open'
  local found = call('HGET', key, id)
  if found and is_ending and string.sub(found, 1, 1) == 'p' then
    call('HDEL', key, id)
    return false
  end
  return found
end

-- In the home, when a transaction is written everywhere.
local function forget(keys, args)
  return call('HDEL', keys[1] .. ':open', asked(args)[1])
end

-- Everything that transactions have left here, and the greatest number of an item.
local function remains(keys)
  return {
    tonumber(call('GET', keys[1] .. ':seq')) or 0,
    call('HGETALL', keys[1] .. ':open'),
    call('HKEYS', keys[1] .. ':part'),
  }
end
`
