import type { BugKind } from './bug.ts'
import { DISK_BUGS } from './disk-bugs.ts'
import { MESSAGE_BUGS } from './message-bugs.ts'
import { PROCESS_BUGS } from './process-bugs.ts'
import { STORAGE_BUGS } from './storage-bugs.ts'

const KINDS = { ...PROCESS_BUGS, ...STORAGE_BUGS, ...DISK_BUGS, ...MESSAGE_BUGS }

export type BugName = keyof typeof KINDS
/** Every bug that can be planted, by its name on the command line. */
export const BUGS: Readonly<Record<BugName, BugKind>> = KINDS

export function isBugName(name: string): name is BugName {
  return Object.hasOwn(KINDS, name)
}
