import type { Json, JsonObject } from '@impresario/protocol'
import { isJsonObject } from '@impresario/protocol'
import type { z } from 'zod'
import type { Api } from './api.ts'
import { BOUNDS } from './bounds.ts'
import type { TellLine } from './log-lines.ts'

/** What the caller of a tool can do and see while the tool runs. */
export interface ToolContext {
  readonly api: Api
  /** The call was cancelled, or the connection is gone. */
  readonly signal: AbortSignal
  /** Says that the call is alive. Does nothing for callers that did not ask for progress. */
  readonly progress: (progress: { readonly done: number; readonly total?: number; readonly message?: string }) => void
  /** Tells the client a line that was written about a job; absent if it did not ask for lines. */
  readonly tellLine?: TellLine | undefined
  /** Where people reach the server. */
  readonly base: string
}

/** Which answers a tool can give: hints for assistants that ask people before they act. */
export interface ToolTraits {
  readonly isReadOnly: boolean
  readonly isDestructive: boolean
  readonly isIdempotent: boolean
}

export const READS: ToolTraits = { isReadOnly: true, isDestructive: false, isIdempotent: true }
export const ADDS: ToolTraits = { isReadOnly: false, isDestructive: false, isIdempotent: false }
export const CHANGES: ToolTraits = { isReadOnly: false, isDestructive: true, isIdempotent: false }

/** A tool of the server itself. Blueprints are tools too, made from their own descriptions. */
export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  /** Any of these is enough to use it for something. What each call needs is decided by the routes behind it. */
  readonly scopes: readonly string[]
  readonly traits: ToolTraits
  readonly input: z.ZodObject
  readonly output: z.ZodObject
  run(args: JsonObject, context: ToolContext): Promise<ToolAnswer>
}

/** The data of an answer, and its text where that is not the data as JSON. */
export interface ToolAnswer {
  readonly data: JsonObject
  readonly text?: string
  readonly isError?: boolean
}

interface Definition<I extends z.ZodObject> extends Omit<Tool, 'input' | 'run'> {
  readonly input: I
  readonly run: (args: z.output<I>, context: ToolContext) => Promise<ToolAnswer>
}

/** A tool with its arguments typed by its schema. */
export function tool<I extends z.ZodObject>(definition: Definition<I>): Tool {
  return {
    ...definition,
    // Boundary: the arguments were read by this very schema.
    run: (args, context) => definition.run(args as z.output<I>, context),
  }
}

/** A refusal of ours, before or beside the API. */
export class ToolRefusal extends Error {
  override readonly name = 'ToolRefusal'
}

export function objectOf(value: Json): JsonObject {
  return isJsonObject(value) ? value : {}
}

export function rowsOf(value: Json): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

export function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** Only these fields, in this order, and only those that are there. */
export function pick(row: JsonObject, fields: readonly string[]): JsonObject {
  const picked: Record<string, Json> = {}
  for (const field of fields) {
    const value = row[field]
    if (value !== undefined && value !== null) picked[field] = value
  }
  return picked
}

/** An object that fits into an answer: the largest fields that do not fit are left out and named. */
export function fitted(whole: JsonObject, bytesMax: number = BOUNDS.answerBytesMax): JsonObject {
  const sizes = Object.entries(whole).map(([field, value]) => ({ field, bytes: bytesOf(value) + field.length }))
  let total = sizes.reduce((sum, { bytes }) => sum + bytes, 0)
  if (total <= bytesMax) return whole
  const omitted: string[] = []
  for (const { field, bytes } of sizes.toSorted((a, b) => b.bytes - a.bytes)) {
    if (total <= bytesMax) break
    omitted.push(field)
    total -= bytes
  }
  const kept = Object.entries(whole).filter(([field]) => !omitted.includes(field))
  return { ...Object.fromEntries(kept), omitted_fields: omitted }
}

function bytesOf(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value))
}

/** Cut at a bound in bytes, never inside a character. */
export function cutText(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= bytesMax) return text
  return (
    bytes
      .subarray(0, bytesMax)
      .toString('utf8')
      // From the first of them on: tried from each of a hundred thousand, it takes seconds.
      .replace(/(?<!\uFFFD)\uFFFD+$/, '')
  )
}

/** Unix seconds as people and assistants read them. */
export function isoTime(value: Json | undefined): string | undefined {
  return typeof value === 'number' ? new Date(value * 1_000).toISOString() : undefined
}

/** The row with its times as texts. */
export function withTimes(row: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(row).map(([field, value]) => [field, TIME_FIELD.test(field) ? (isoTime(value) ?? value) : value]),
  )
}

const TIME_FIELD = /_at$|^at$|^next_run_for$/
