/** For commands that talk to no server: what they read and print, without the client. */
export { parseExact, stringifyExact } from '@impresario/protocol/light'
export { toWire } from './wire-case.ts'
