/** The trace that a piece of work belongs to, as defined by W3C Trace Context. Passed on unchanged. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
}

/** A future version may have more after the four parts. Ids of zeros are not valid. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:$|-)/
const TRACEPARENT_CHARS_MAX = 128
const PARTS_OF_VERSION_00 = 4

/** The minimum that W3C requires implementations to pass on. */
export const TRACESTATE_CHARS_MAX = 512
const TRACESTATE_MEMBERS_MAX = 32
/** Longer members are left out first if there is not enough room. */
const LONG_MEMBER_CHARS = 128
const MEMBER =
  /^(?:[a-z][\w*/-]{0,255}|[a-z\d][\w*/-]{0,240}@[a-z][\w*/-]{0,13})=[\u0020-\u002B\u002D-\u003C\u003E-\u007E]{1,256}$/

/** Reads the two headers, or fields of the same names. Invalid values count as absent, as W3C requires. */
export function traceContextOf(given: Readonly<Record<string, unknown>>): TraceContext | undefined {
  const { traceparent } = given
  if (typeof traceparent !== 'string' || !isTraceparent(traceparent)) return undefined
  const tracestate = tracestateOf(given['tracestate'])
  return tracestate === undefined ? { traceparent } : { traceparent, tracestate }
}

function isTraceparent(text: string): boolean {
  if (text.length > TRACEPARENT_CHARS_MAX || !TRACEPARENT.test(text)) return false
  return !text.startsWith('00') || text.split('-').length === PARTS_OF_VERSION_00
}

/** The members that are kept: all, or as many as fit; the oldest and the long ones are left out first. */
function tracestateOf(given: unknown): string | undefined {
  if (typeof given !== 'string' || given.length > 16 * TRACESTATE_CHARS_MAX) return undefined
  const members = given
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '')
  const keys = new Set(members.map((member) => member.slice(0, member.indexOf('='))))
  if (members.length === 0 || members.length > TRACESTATE_MEMBERS_MAX || keys.size < members.length) return undefined
  if (!members.every((member) => MEMBER.test(member))) return undefined
  const whole = members.join(',')
  if (whole.length <= TRACESTATE_CHARS_MAX) return whole
  const kept = members.filter((member) => member.length <= LONG_MEMBER_CHARS)
  while (kept.join(',').length > TRACESTATE_CHARS_MAX) kept.pop()
  return kept.length === 0 ? undefined : kept.join(',')
}
