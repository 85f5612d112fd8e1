/** What a program needs that talks to no server: loads in a few milliseconds, where the whole package takes fifty. */
export { ImpresarioError, isImpresarioError } from './errors.ts'
export type { ErrorCode } from './errors.ts'
export { parseExact, stringifyExact } from './exact/exact-json.ts'
export { snakeName } from './snake-name.ts'
