import { LIMITS } from '@impresario/protocol'
import type { ScriptPolicy } from './script.ts'

/** What holds for blueprints that say nothing. A result timeout and a life span have no default: only users know them. */
export type PolicyDefaults = Required<
  Omit<ScriptPolicy, 'resultTimeoutMs' | 'executionTimeoutMs' | 'retryTimeouts' | 'backoffFactor' | 'offloads'>
> &
  Pick<ScriptPolicy, 'offloads'>

export const POLICY_DEFAULTS: PolicyDefaults = {
  transitionsMax: LIMITS.transitionsMaxDefault,
  handlerAttemptsMax: LIMITS.handlerAttemptsMax,
  taskAttemptsMax: LIMITS.taskAttemptsMax,
  backoffMs: LIMITS.backoffMs,
  backoffMsMax: LIMITS.backoffMsMax,
  runTimeoutMs: LIMITS.runTimeoutMs,
}

/**
 * What a blueprint says itself, completed by defaults. Who gives results a deadline has said how long a task may
 * take: the default for runs does not cut it short.
 */
export function completePolicy(own: Partial<ScriptPolicy>, defaults: PolicyDefaults): ScriptPolicy {
  const { runTimeoutMs, ...others } = defaults
  return { ...others, ...(own.resultTimeoutMs === undefined ? { runTimeoutMs } : {}), ...own }
}
