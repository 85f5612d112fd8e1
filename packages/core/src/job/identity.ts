import type { TryRef } from './event.ts'

/** A turn is named by its job: there is never more than one. */
export function turnId(jobId: string): string {
  return jobId
}

/** The job that an item is named after: what stands before the first full stop. */
export function jobOfItem(id: string): string {
  const end = id.indexOf('.')
  return end === -1 ? id : id.slice(0, end)
}

/** Names a task through all its tries. Workers use it as an idempotency key. */
export function taskId(jobId: string, visit: number, branch: string): string {
  return `${jobId}.${visit}.${branch}`
}

export function timerId(jobId: string, timer: string): string {
  return `${jobId}.${timer}`
}

/** The same parent, visit and branch always give the same child, so that a repeated letter creates it once. */
export function childJobId(jobId: string, visit: number, branch: string): string {
  return `${jobId}-${visit}-${branch}`
}

const UUID = String.raw`[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}`
const NAMED = new RegExp(`^${UUID}(?=-|$)`)
const BESIDE = new RegExp(`^(?<named>${UUID})_[\\da-z]+(?=-|$)`)

/**
 * Where a job lies whose caller named an id that another client's job has. Both get what they asked for, and neither learns
 * of the other. `mark` stands for the client; children carry it inside of their ids.
 */
export function besideJobId(id: string, mark: string): string {
  return id.replace(NAMED, (named) => `${named}_${mark}`)
}

/** The id as its owner knows it. */
export function shownJobId(id: string): string {
  return id.replace(BESIDE, '$<named>')
}

/**
 * Where a parent's word to its child lies in the mail. There is one place for it, so that a cancellation takes the
 * place of a creation that was not delivered yet: delivered after it, it would find no job to cancel.
 */
export function orderId(childId: string): string {
  return `${childId}.order`
}

/** Where a child's last word to its parent lies in the mail. */
export function endedId(childId: string): string {
  return `${childId}.ended`
}

/**
 * Names a message to a job's webhook. `what` tells apart those of one visit. Receivers know a repeated message by it,
 * and their signature is over `id.timestamp.body`: a full stop in it would be ambiguous.
 */
export function messageId(jobId: string, visit: number, what: string): string {
  return `msg_${jobId.replaceAll('.', '_')}_${visit}_${what}`
}

/** One try among all of its job. */
export function tryId({ visit, branch, attempt }: TryRef): string {
  return `${visit}.${branch}.${attempt}`
}

/** One delivery among all of its job: the end of what a worker sees as `task_id`. */
export function answerId(ref: TryRef & { readonly token: number }): string {
  return `${tryId(ref)}.${ref.token.toString(36)}`
}

/** One delivery of one try: what a worker sees as `task_id`. A later delivery has another token. */
export interface DeliveryRef extends TryRef {
  readonly jobId: string
  readonly token: number
}

export function deliveryId(ref: DeliveryRef): string {
  return `${ref.jobId}.${answerId(ref)}`
}

/** As we write them: another spelling of the same number, such as `01`, is none of ours. */
const WHOLE = /^(?:0|[1-9]\d{0,8})$/
const BRANCH = /^[\w-]{1,100}$/
const TOKEN = /^[\da-z]{1,12}$/

/** Reads a `task_id` from the wire; `undefined` for one that we never gave out. */
export function parseDeliveryId(text: string): DeliveryRef | undefined {
  const beforeToken = text.lastIndexOf('.')
  const beforeAttempt = text.lastIndexOf('.', beforeToken - 1)
  const beforeBranch = text.lastIndexOf('.', beforeAttempt - 1)
  const beforeVisit = text.lastIndexOf('.', beforeBranch - 1)
  // Four full stops, and something before the first of them.
  if (beforeVisit <= 0) return undefined
  const visit = text.slice(beforeVisit + 1, beforeBranch)
  const branch = text.slice(beforeBranch + 1, beforeAttempt)
  const attempt = text.slice(beforeAttempt + 1, beforeToken)
  const token = text.slice(beforeToken + 1)
  if (!WHOLE.test(visit) || !BRANCH.test(branch) || !WHOLE.test(attempt) || !TOKEN.test(token)) return undefined
  const ref: DeliveryRef = {
    jobId: text.slice(0, beforeVisit),
    visit: Number(visit),
    branch,
    attempt: Number(attempt),
    token: Number.parseInt(token, 36),
  }
  return ref.token.toString(36) === token ? ref : undefined
}
