/** What we can send, the best first: where a caller likes several as much, the first of them is taken. */
export const ENCODINGS = ['zstd', 'gzip'] as const
export type Encoding = (typeof ENCODINGS)[number]

/**
 * The encodings that an `Accept-Encoding` header allows, the best first. `refusesPlain`: it says that the answer must not
 * be sent as it is, which is obeyed where anything else is possible.
 */
export interface Accepted {
  readonly encodings: readonly Encoding[]
  readonly refusesPlain: boolean
}

const NOTHING: Accepted = { encodings: [], refusesPlain: false }

/** Callers send one of a few texts over and over. */
const known = new Map<string, Accepted>()
const KNOWN_MAX = 256
const HEADER_CHARS_MAX = 512

export function acceptedEncodings(header: string | undefined): Accepted {
  if (header === undefined || header === '' || header.length > HEADER_CHARS_MAX) return NOTHING
  const found = known.get(header)
  if (found !== undefined) return found
  const accepted = read(header)
  if (known.size >= KNOWN_MAX) known.clear()
  known.set(header, accepted)
  return accepted
}

/** The best of the forms in which something is kept already; `undefined`: only as it is. The first wins among equals. */
export function preferredEncoding<Name extends string>(
  header: string | undefined,
  offered: readonly Name[],
): Name | undefined {
  if (header === undefined || header.length > HEADER_CHARS_MAX) return undefined
  return allowed(header, offered).names[0]
}

function read(header: string): Accepted {
  const { names: encodings, plain } = allowed(header, ENCODINGS)
  return { encodings, refusesPlain: plain === 0 }
}

function allowed<Name extends string>(
  header: string,
  offered: readonly Name[],
): { readonly names: readonly Name[]; readonly plain: number | undefined } {
  const weights = new Map<string, number>()
  for (const part of header.split(',')) {
    const [name = '', ...parameters] = part
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/)
    if (name !== '') weights.set(name === 'x-gzip' ? 'gzip' : name, weightOf(parameters))
  }
  const others = weights.get('*')
  const weight = (name: string): number => weights.get(name) ?? others ?? 0
  // Without a word about it, plain is allowed and the least liked.
  const plain = weights.get('identity') ?? (others === 0 ? 0 : undefined)
  const names = offered
    .filter((name) => weight(name) > 0 && weight(name) >= (plain ?? 0))
    .toSorted((a, b) => weight(b) - weight(a))
  return { names, plain }
}

/** From 0 to 1; an invalid weight counts as refused, so that no client gets an encoding that it may not understand. */
function weightOf(parameters: readonly string[]): number {
  const given = parameters.find((parameter) => parameter.startsWith('q='))
  if (given === undefined) return 1
  const text = given.slice('q='.length)
  return /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(text) ? Number(text) : 0
}
