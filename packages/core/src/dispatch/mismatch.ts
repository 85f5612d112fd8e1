import { seenText, writeJson } from '@impresario/protocol'
import type { Json } from '@impresario/protocol'
import type { Mismatch, MismatchReason } from './match.ts'

interface Phrasing {
  /** Of one worker, with what it has. */
  readonly sentence: (mismatch: Mismatch) => string
  /** Of several workers, with what they all lack: after "1 worker", and after "2 workers". */
  readonly one: (mismatch: Mismatch) => string
  readonly many: (mismatch: Mismatch) => string
}

/** A mismatch as a sentence about "it", the worker. */
export function describeMismatch(mismatch: Mismatch): string {
  return PHRASINGS[mismatch.reason].sentence(mismatch)
}

/** What `count` workers with the same mismatch have in common: "2 lack 8 GB of VRAM". */
export function describeShared(mismatch: Mismatch, count: number): string {
  const phrasing = PHRASINGS[mismatch.reason]
  return `${count} ${count === 1 ? phrasing.one(mismatch) : phrasing.many(mismatch)}`
}

const PHRASINGS: Readonly<Record<MismatchReason, Phrasing>> = {
  skill: lacking(
    ({ needed }) => `the skill ${show(needed)}`,
    ({ needed }) => `It lacks the skill ${show(needed)}.`,
  ),
  skill_unavailable: {
    sentence: ({ needed }) => `It has the skill ${show(needed)} but cannot start it now.`,
    one: () => 'cannot start it now',
    many: () => 'cannot start it now',
  },
  status: being(
    ({ has }) => plain(has),
    ({ has }) => `Its status is ${plain(has)}.`,
  ),
  gpu: lacking(
    () => 'a GPU',
    () => 'It has no GPU.',
  ),
  gpu_model: lacking(
    ({ needed }) => `a GPU ${show(needed)}`,
    ({ needed, has }) => `It has no GPU ${show(needed)}, only ${show(has)}.`,
  ),
  gpu_vram: lacking(
    ({ needed }) => `${plain(needed)} GB of VRAM`,
    ({ needed, has }) => `It has ${plain(has)} GB of VRAM; the task needs ${plain(needed)} GB.`,
  ),
  cpu_cores: lacking(
    ({ needed }) => `${plain(needed)} CPU cores`,
    ({ needed, has }) => `It has ${plain(has)} CPU cores; the task needs ${plain(needed)}.`,
  ),
  ram_gb: lacking(
    ({ needed }) => `${plain(needed)} GB of RAM`,
    ({ needed, has }) => `It has ${plain(has)} GB of RAM; the task needs ${plain(needed)} GB.`,
  ),
  models: lacking(
    ({ needed }) => `the model ${show(needed)}`,
    ({ needed }) => `It lacks the model ${show(needed)}.`,
  ),
  software: lacking(
    ({ name, needed }) => `the software ${name} (${plain(needed)})`,
    ({ name, needed, has }) => `The task needs the software ${name} (${plain(needed)}); it has ${show(has)}.`,
  ),
  property: lacking(
    ({ name, needed }) => `${name} = ${show(needed)}`,
    ({ name, needed, has }) => `The task needs ${name} = ${show(needed)}; it has ${show(has)}.`,
  ),
  max_cost: {
    sentence: ({ needed, has }) => `It costs ${plain(has)} per second; the task allows ${plain(needed)}.`,
    one: ({ needed }) => `costs more than ${plain(needed)} per second`,
    many: ({ needed }) => `cost more than ${plain(needed)} per second`,
  },
  slots: being(
    () => 'full',
    ({ needed, has }) => `It is full: it has ${plain(has)} tasks and ${plain(needed)} slots.`,
  ),
  excluded: {
    sentence: () => 'It has just failed this task, and another worker could take it.',
    one: () => 'has just failed it',
    many: () => 'have just failed it',
  },
}

function lacking(what: (mismatch: Mismatch) => string, sentence: (mismatch: Mismatch) => string): Phrasing {
  return { sentence, one: (mismatch) => `lacks ${what(mismatch)}`, many: (mismatch) => `lack ${what(mismatch)}` }
}

function being(what: (mismatch: Mismatch) => string, sentence: (mismatch: Mismatch) => string): Phrasing {
  return { sentence, one: (mismatch) => `is ${what(mismatch)}`, many: (mismatch) => `are ${what(mismatch)}` }
}

/** Names in quotes, lists as an enumeration, nothing as "none". */
function show(value: Json): string {
  if (typeof value === 'string') {
    const seen = seenText(value)
    return typeof seen === 'string' ? `'${seen}'` : String(seen)
  }
  if (value === null) return 'none'
  if (isList(value)) return value.length === 0 ? 'none' : value.map(show).join(', ')
  return plain(value)
}

function plain(value: Json): string {
  return typeof value === 'string' ? String(seenText(value)) : writeJson(value)
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value)
}
