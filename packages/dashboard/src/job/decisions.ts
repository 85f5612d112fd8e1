import type { Translate } from '../text/translate.ts'

const KNOWN = new Set(['approved', 'rejected', 'accepted', 'declined', 'send_back', 'expired', 'ignored'])

/** What a button says that makes this decision: `approved` is the outcome, Approve is what somebody does. */
export function decisionWords(t: Translate, name: string): string {
  if (KNOWN.has(name)) return t(`decision.${name as 'approved'}`)
  const text = name.replaceAll(/[_-]+/g, ' ').trim()
  return text === '' ? name : text.charAt(0).toUpperCase() + text.slice(1)
}

export function isRefusal(name: string): boolean {
  return /^(?:reject|declin|den|refus|cancel)/i.test(name)
}
