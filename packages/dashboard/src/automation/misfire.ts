import { isDraft } from './draft.ts'
import type { Draft } from './draft.ts'

/** What becomes of times at which no server ran. */
export const MISFIRES = ['run_once', 'skip', 'catch_up'] as const
export type Misfire = (typeof MISFIRES)[number]

const MOST = 10

/** The policy of a definition, and how many times at most are made good. */
export function misfireOf({ misfire }: Draft): { readonly kind: Misfire; readonly most: unknown } {
  const kind = MISFIRES.find((one) => one === misfire || (isDraft(misfire) && one in misfire)) ?? 'run_once'
  const given = isDraft(misfire) ? misfire['catch_up'] : undefined
  return { kind, most: isDraft(given) ? (given['max'] ?? MOST) : MOST }
}

/** The definition with another policy. What else stands beside the number stays. */
export function withMisfire(draft: Draft, kind: Misfire, most?: unknown): Draft {
  const { misfire, ...rest } = draft
  if (kind === 'run_once') return rest
  if (kind === 'skip') return { ...rest, misfire: kind }
  const given = isDraft(misfire) && isDraft(misfire['catch_up']) ? misfire['catch_up'] : {}
  const { max, ...others } = given
  const number = most ?? max
  return { ...rest, misfire: { catch_up: number === undefined ? others : { ...others, max: number } } }
}
