import { createHash } from 'node:crypto'
import { COMMANDS } from './script-commands.ts'
import { COMMITS } from './script-commits.ts'
import { ITEMS } from './script-items.ts'
import { LOCKS } from './script-locks.ts'
import { TRANSFER } from './script-transfer.ts'
import { RECORDS } from './script-records.ts'
import { SURVEYS } from './script-surveys.ts'

interface Registered {
  /** Read-only functions, and functions that only delete, run even when the server's memory is full. */
  readonly flag?: 'no-writes' | 'allow-oom'
  /** Which transactions over several shards affect its reply; see `with_pendings`. */
  readonly touched?: 'kind' | 'queue' | 'record' | 'items' | 'leases'
}

/** The calls that are always part of a bundle, which one of two functions works on: `many`, or `many_reads` for a full server. */
const CALLS = {
  commit: {},
  claim: { touched: 'queue' },
  renew: { touched: 'leases' },
  survey: { touched: 'queue' },
  read: { touched: 'record' },
  peek: { touched: 'items' },
} as const satisfies Readonly<Record<string, Registered>>

/** The functions that the client calls. */
const FUNCTIONS = {
  now: { flag: 'no-writes' },
  list: { flag: 'no-writes', touched: 'kind' },
  held: { flag: 'no-writes', touched: 'queue' },
  counts: { touched: 'kind' },
  lanes: { touched: 'queue' },
  oldest: { touched: 'queue' },
  claim_expired: { touched: 'queue' },
  release: {},
  survey_expired: { touched: 'queue' },
  begin: {},
  prepare: {},
  decide: {},
  finish: {},
  cancel: { flag: 'allow-oom' },
  status: { flag: 'allow-oom' },
  forget: { flag: 'allow-oom' },
  remains: { flag: 'no-writes' },
  many: {},
  many_reads: { flag: 'no-writes' },
  outline: { flag: 'no-writes' },
  tally: { flag: 'no-writes' },
  overdue: { flag: 'no-writes' },
  hands: { flag: 'no-writes' },
  dump_records: { flag: 'no-writes' },
  dump_items: { flag: 'no-writes' },
  load_page: {},
  raise_token: {},
  clear_some: { flag: 'allow-oom' },
} as const satisfies Readonly<Record<string, Registered>>

/** What the server knows. */
export type RegisteredName = keyof typeof FUNCTIONS
/** What is always asked for in a bundle. */
export type CallName = keyof typeof CALLS
export type FunctionName = RegisteredName | CallName

const BODY = [ITEMS, RECORDS, LOCKS, COMMANDS, COMMITS, SURVEYS, TRANSFER].join('\n')

/**
 * Several calls in one, each of which succeeds or fails on its own. The first argument is all of them, value after value: whose
 * they are, then of each its name, its clock, and what it asks. Bodies follow, in the order of the batches that they belong to.
 * Replies are those of the calls, after a list of the numbers of those that failed.
 */
const BUNDLES = String.raw`
local function many(keys, args)
  local text, body = args[1], 2
  local at, origin, hands = unpack_limit(args[1], 2, 0)
  local names, clocks, questions, count = {}, {}, {}, 0
  -- All is read before anything is done.
  while at ~= -1 do
    count = count + 1
    at, names[count], clocks[count] = unpack_limit(text, 2, at)
    if names[count] == 'commit' then
      at, questions[count] = batch_at(text, at, body, origin, hands)
      body = body + #questions[count].puts + #questions[count].items
    else at, questions[count] = unpack_limit(text, 1, at) end
  end
  bundle = new_bundle(origin)
  local failed, replies = {}, {}
  for i = 1, count do
    local is_done, reply
    if names[i] == 'commit' then is_done, reply = pcall(commit, keys, clocks[i], questions[i], args)
    else is_done, reply = pcall(CALLS[names[i]], keys, { clocks[i], questions[i] }) end
    if not is_done then
      failed[#failed + 1] = i
      reply = type(reply) == 'table' and reply.err or tostring(reply)
    end
    replies[i + 1] = reply
  end
  replies[1] = failed
  local done = bundle
  local is_written, reason = pcall(function()
    if done.sweeps > 0 then sweep(keys[1], done.swept_at, done.sweeps) end
    catch_up()
  end)
  bundle = nil
  if not is_written then error(reason) end
  for key, fields in pairs(done.counts) do
    for field, by in pairs(fields) do add_to_count(key, field, by) end
  end
  if done.seq then call('SET', keys[1] .. ':seq', string.format('%.0f', done.seq)) end
  if #done.hints > 1 then publish(keys[1], done.hints) end
  return replies
end
local many_reads = many
`

/**
 * Named after a hash of its content: instances of an older and a newer program run side by side, each with its own
 * functions.
 */
const NAME = `impresario_${createHash('sha1')
  .update(BODY + BUNDLES + JSON.stringify([CALLS, FUNCTIONS]))
  .digest('hex')
  .slice(0, 12)}`

/**
 * A function library instead of scripts: its code is compiled once and its local functions are created once, while a
 * script creates them on every call. It is also part of the data, so that a restart or a failover does not lose it.
 */
export const LIBRARY = [
  `#!lua name=${NAME}`,
  BODY,
  'local CALLS = {}',
  BUNDLES,
  ...Object.entries<Registered>(CALLS).map(([name, registered]) => `CALLS.${name} = ${callbackOf(name, registered)}`),
  ...Object.entries<Registered>(FUNCTIONS).map(([name, registered]) => registration(name, registered)),
].join('\n')

export function functionName(name: RegisteredName): string {
  return `${NAME}_${name}`
}

function callbackOf(name: string, { touched }: Registered): string {
  return touched === undefined ? name : `with_pendings(${name}, touched_${touched})`
}

function registration(name: string, registered: Registered): string {
  const flags = registered.flag === undefined ? '' : `, flags = { '${registered.flag}' }`
  const callback = callbackOf(name, registered)
  return `redis.register_function{ function_name = '${NAME}_${name}', callback = running(${callback})${flags} }`
}
