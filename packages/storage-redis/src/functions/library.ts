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

/** The functions that the client calls. */
const FUNCTIONS = {
  now: { flag: 'no-writes' },
  read: { flag: 'no-writes', touched: 'record' },
  list: { flag: 'no-writes', touched: 'kind' },
  peek: { flag: 'no-writes', touched: 'items' },
  held: { flag: 'no-writes', touched: 'queue' },
  counts: { touched: 'kind' },
  lanes: { touched: 'queue' },
  oldest: { touched: 'queue' },
  claim: { touched: 'queue' },
  claim_expired: { touched: 'queue' },
  renew: { touched: 'leases' },
  release: {},
  commit: {},
  survey: { touched: 'queue' },
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

export type FunctionName = keyof typeof FUNCTIONS

const BODY = [ITEMS, RECORDS, LOCKS, COMMANDS, COMMITS, SURVEYS, TRANSFER].join('\n')

/**
 * Several calls in one, each of which succeeds or fails on its own. First their names and the lengths of their
 * arguments, then all arguments in one text: the server's MessagePack does not support binary data.
 */
const BUNDLES = String.raw`
local function many(keys, args)
  local replies, at = {}, 0
  local calls = cmsgpack.unpack(args[1])
  bundle = new_bundle()
  for i, call in ipairs(calls) do
    local own = {}
    for j = 2, #call do
      own[j - 1] = string.sub(args[2], at + 1, at + call[j])
      at = at + call[j]
    end
    local is_done, reply = pcall(CALLS[call[1]], keys, own)
    if is_done then replies[i] = { 0, reply }
    else replies[i] = { 1, type(reply) == 'table' and reply.err or tostring(reply) } end
  end
  if bundle.sweeps > 0 then sweep(keys[1], bundle.swept_at, bundle.sweeps) end
  local done = bundle
  bundle = nil
  write_sets(done.sets)
  for key, fields in pairs(done.counts) do
    for field, by in pairs(fields) do add_to_count(key, field, by) end
  end
  if done.seq then redis.call('SET', keys[1] .. ':seq', string.format('%.0f', done.seq)) end
  if #done.hints > 0 then publish(keys[1], done.hints) end
  return replies
end
local many_reads = many
`

/**
 * Named after a hash of its content: instances of an older and a newer program run side by side, each with its own
 * functions.
 */
const NAME = `impresario_${createHash('sha1')
  .update(BODY + BUNDLES + JSON.stringify(FUNCTIONS))
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
  ...Object.entries<Registered>(FUNCTIONS).map(([name, registered]) => registration(name, registered)),
].join('\n')

export function functionName(name: FunctionName): string {
  return `${NAME}_${name}`
}

function registration(name: string, { flag, touched }: Registered): string {
  const callback = touched === undefined ? name : `with_pendings(${name}, touched_${touched})`
  const flags = flag === undefined ? '' : `, flags = { '${flag}' }`
  return [
    `CALLS.${name} = ${callback}`,
    `redis.register_function{ function_name = '${NAME}_${name}', callback = CALLS.${name}${flags} }`,
  ].join('\n')
}
