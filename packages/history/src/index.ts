export type * from './history.ts'
export { openHistory } from './open.ts'
export type { OpenHistoryOptions } from './open.ts'
