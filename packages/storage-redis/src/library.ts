import { createHash } from 'node:crypto'
import { COMMANDS } from './script-commands.ts'
import { ITEMS } from './script-items.ts'
import { RECORDS } from './script-records.ts'

/** What the client calls, and whether it writes. One that does not is answered also when the server's memory is full. */
const FUNCTIONS = {
  read: 'no-writes',
  list: 'no-writes',
  peek: 'no-writes',
  counts: '',
  lanes: '',
  claim: '',
  claim_expired: '',
  renew: '',
  release: '',
  commit: '',
} as const

export type FunctionName = keyof typeof FUNCTIONS

const BODY = `${ITEMS}\n${RECORDS}\n${COMMANDS}`

/** Named by its content: instances of an older and a newer program work side by side, each with its own functions. */
const NAME = `impresario_${createHash('sha1').update(BODY).digest('hex').slice(0, 12)}`

/**
 * A function library instead of scripts: its code is compiled once and its helpers are made once, where a script makes them
 * anew with every call, and it is a part of the data, so that a restart or a failover does not lose it.
 */
export const LIBRARY = [
  `#!lua name=${NAME}`,
  BODY,
  ...Object.entries(FUNCTIONS).map(
    ([name, flag]) =>
      `redis.register_function{ function_name = '${NAME}_${name}', callback = ${name}${flag === '' ? '' : `, flags = { '${flag}' }`} }`,
  ),
].join('\n')

export function functionName(name: FunctionName): string {
  return `${NAME}_${name}`
}
