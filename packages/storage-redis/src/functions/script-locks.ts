/**
 * The part of the library that knows of transactions over several shards (see the README). In each shard that is not the
 * home of a transaction:
 *
 * | key | what |
 * |---|---|
 * | `lock` | hash: the transaction that has locked a record (`r:<kind>:<id>`) or an item (`q:<queue>:<id>`) |
 * | `part` | hash: the names that a transaction has locked here |
 * | `parcel:<transaction>` | list: what it will write here, as `commit` takes it |
 *
 * And in its home `open`, a hash: `p` and whose transaction it is while it is undecided; `c` with time, sequence and the
 * other shards when it is decided, until it is written everywhere. A namespace of one shard has none of these keys, and its
 * calls do not look for them.
 */
export const LOCKS = String.raw`
local BLOCKED = -2

-- The key of the locks if there may be any.
local function locks_of(keys)
  return keys[2] and call('EXISTS', keys[2]) == 1 and keys[2] or nil
end

local function is_locked(locks, q, id)
  return call('HEXISTS', locks, string.match(q, ':(q:[^:]*:)$') .. id) == 1
end

-- Counters of several shards keep up with each other, so that what they give can be put in order.
local function raise(key, value)
  if (tonumber(call('GET', key)) or 0) < value then call('SET', key, string.format('%.0f', value)) end
end

-- The transactions that may change here what was asked for, packed; an empty text if there are none.
local function pendings(keys, touches)
  if not locks_of(keys) then return '' end
  local found = {}
  local parts = call('HGETALL', keys[1] .. ':part')
  for i = 1, #parts, 2 do
    for _, name in ipairs(unpack_value(parts[i + 1])) do
      if touches(name) then
        found[#found + 1] = parts[i]
        break
      end
    end
  end
  return #found > 0 and pack(found) or ''
end

local function beginning(text)
  return function(name) return string.sub(name, 1, #text) == text end
end

-- Of several shards each says with its answer which transactions may still change it.
local function with_pendings(run, touched)
  return function(keys, args)
    local reply = run(keys, args)
    if not keys[2] then return reply end
    return { pendings(keys, touched(asked(args))), reply }
  end
end

local function touched_kind(question) return beginning('r:' .. question[1] .. ':') end
local function touched_queue(question) return beginning('q:' .. question[1] .. ':') end
local function touched_record(question)
  local wanted = 'r:' .. question[1] .. ':' .. question[2]
  return function(name) return name == wanted end
end
local function touched_items(question)
  local wanted = {}
  for _, id in ipairs(question[2]) do wanted['q:' .. question[1] .. ':' .. id] = true end
  return function(name) return wanted[name] end
end
local function touched_leases(question)
  local wanted = {}
  for _, ref in ipairs(question[1]) do wanted['q:' .. ref[1] .. ':' .. ref[2]] = true end
  return function(name) return wanted[name] end
end
`
