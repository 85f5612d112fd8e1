import type { Chance } from './chance.fixture.ts'
import { ODD_TEXTS, ODD_VALUES, noise } from './hostile.fixture.ts'
import { boundsOf, sample } from './schema-sampler.fixture.ts'
import type { Sampler, SchemaNode } from './schema-sampler.fixture.ts'

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: SchemaNode
}

/** One method of one path of the API's document. */
export interface Operation {
  readonly method: string
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly body: SchemaNode | undefined
}

export interface GeneratedRequest {
  readonly kind: 'valid' | 'edge' | 'one wrong' | 'noise'
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

const KINDS: readonly GeneratedRequest['kind'][] = ['valid', 'edge', 'one wrong', 'noise']
const JSON_TYPE = { 'content-type': 'application/json' }

/** Parameters that make a request wait for news: such waits are asked for, and kept short. */
const WAITS = new Set(['wait', 'timeout'])

export function generate(operation: Operation, sampler: Sampler, index: number): GeneratedRequest {
  const kind = KINDS[index % KINDS.length] ?? 'valid'
  const { method } = operation
  if (kind === 'noise') return { kind, method, ...noisy(operation, sampler) }
  const url = urlOf(operation, sampler, kind === 'valid' ? 0 : 0.2)
  if (operation.body === undefined) return { kind, method, url, headers: {}, body: undefined }
  const made = sample(operation.body, sampler)
  const body =
    kind === 'valid' ? made : kind === 'edge' ? onEdge(operation.body, made, sampler) : oneWrong(made, sampler)
  return { kind, method, url, headers: JSON_TYPE, body: textOf(shortWaits(body)) }
}

/** Paths with values in their places; some of them odd, some of the query as the document has it. */
function urlOf(operation: Operation, sampler: Sampler, oddness: number): string {
  const { chance } = sampler
  const value = (parameter: Parameter): string => {
    // Without a time it would go on for ever.
    if (operation.path.endsWith('/changes')) return chance.pick(['0', '0.01', 'soon'])
    if (WAITS.has(parameter.name)) return chance.pick(['0', '0.01', 'soon', ''])
    if (chance.isTrue(oddness)) return chance.pick(ODD_TEXTS)
    return encodeURIComponent(String(sample(parameter.schema ?? {}, sampler, parameter.name)))
  }
  let path = operation.path
  const query: string[] = []
  for (const parameter of operation.parameters) {
    if (parameter.in === 'path') path = path.replace(`{${parameter.name}}`, () => value(parameter))
    else if (parameter.in === 'query' && isSent(parameter, chance)) query.push(`${parameter.name}=${value(parameter)}`)
  }
  return sendable(query.length === 0 ? path : `${path}?${query.join('&')}`)
}

/** Node refuses to send other characters at all. */
function sendable(url: string): string {
  return url.replaceAll(/[^\u0021-\u007E]/g, '%20')
}

/** Waits that were not asked for may last half a minute, so a wait is always named. */
function isSent(parameter: Parameter, chance: Chance): boolean {
  return parameter.required === true || WAITS.has(parameter.name) || chance.isTrue(0.25)
}

function noisy(operation: Operation, sampler: Sampler): Pick<GeneratedRequest, 'url' | 'headers' | 'body'> {
  const { chance } = sampler
  const url = urlOf(operation, sampler, 0.6)
  const extra = chance.isTrue(0.3)
    ? `${url.includes('?') ? '&' : '?'}${chance.pick(ODD_TEXTS)}=${chance.pick(ODD_TEXTS)}`
    : ''
  const headers = chance.isTrue(0.3) ? { 'content-type': chance.pick(CONTENT_TYPES) } : JSON_TYPE
  return { url: sendable(`${url}${extra}`), headers, body: operation.method === 'get' ? undefined : noise(chance) }
}

const CONTENT_TYPES = ['text/plain', 'application/xml', 'application/json; charset=utf-16', 'multipart/form-data', 'x']

function onEdge(schema: SchemaNode, made: unknown, sampler: Sampler): unknown {
  const bounds = boundsOf(schema, sampler)
  if (bounds.length === 0) return oneWrong(made, sampler)
  const bound = sampler.chance.pick(bounds)
  return withValue(made, bound.path, sampler.chance.pick(bound.values))
}

/** Another value in one place, or a field too many or too few. */
function oneWrong(made: unknown, sampler: Sampler): unknown {
  const { chance } = sampler
  const paths = pathsOf(made)
  const path = chance.pick(paths)
  if (chance.isTrue(0.15)) return withValue(made, [...path, 'unknown_field'], chance.pick(ODD_VALUES))
  if (chance.isTrue(0.15)) return withValue(made, path, undefined)
  return withValue(made, path, chance.pick(ODD_VALUES))
}

function pathsOf(value: unknown, path: readonly (string | number)[] = []): readonly (readonly (string | number)[])[] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...path, key]))]
}

/** A copy with another value at the path; what is missing on the way there is made. */
function withValue(value: unknown, path: readonly (string | number)[], wanted: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return wanted
  const inner = isRecord(value) ? value[key] : undefined
  if (isList(value)) {
    const copy = [...value]
    copy[Number(key)] = withValue(value[Number(key)], rest, wanted)
    return copy
  }
  const own = isRecord(value) ? value : {}
  return { ...own, [key]: withValue(inner, rest, wanted) }
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function shortWaits(body: unknown): unknown {
  if (!isRecord(body) || typeof body['timeout'] !== 'number') return body
  return { ...body, timeout: Math.min(body['timeout'], 0.01) }
}

function textOf(body: unknown): string | undefined {
  return body === undefined ? undefined : JSON.stringify(body)
}
