import type { wire } from '@impresario/client'
import { isAnyNumber, stringifyExact } from '@impresario/protocol'
import { absolute, duration } from '../data/format.ts'
import { en } from './en.ts'
import { reasonsEn } from './reasons-en.ts'
import type { Language, TextKey, Translate } from './translate.ts'

/*
 * Explanations of the server in the words of the page. It sends a code and values beside every English sentence; the sentence
 * is shown where the code, or one that it leads to, is of a newer server.
 */

export interface Speaker {
  readonly t: Translate
  readonly language: Language
}

type Values = Readonly<Record<string, unknown>>

/** What a job stands still for; null for one that does not. */
export function waitWords(speaker: Speaker, why: Pick<wire.ExplanationBody, 'summary' | 'reasons'>): string | null {
  const said = why.reasons.map((reason) => oneWait(speaker, reason))
  return said.length === 0 || said.includes(undefined) ? why.summary : said.join(' ')
}

function oneWait({ t, language }: Speaker, { code, values }: wire.ReasonBody): string | undefined {
  const { message, key, until } = values
  if (code === 'quarantined' && message === null) return t('reason.quarantinedUnknown')
  const chosen = code === 'event' && key !== null ? 'eventKey' : code
  const moment = typeof until === 'number' ? { until: absolute(until, language) } : {}
  const quoted = quote(t, values, ['state', 'to', 'topic', 'key', 'names'])
  const ended = code === 'undoing' ? { outcome: statusWord(t, values['outcome']) } : {}
  return say(t, `reason.${chosen}`, { ...plainly(values), ...quoted, ...moment, ...ended })
}

/** Who is chosen for a task and why, or why nobody is. */
export function choiceWords(t: Translate, { reason, summary }: Pick<wire.ChoiceBody, 'reason' | 'summary'>): string {
  const { code, values } = reason
  const quoted = quote(t, values, ['skill', 'worker', 'strategy', 'next'])
  const because = code === 'best' ? say(t, `because.${String(values['criterion'])}`, quoted) : ''
  const obstacles = code === 'none_fits' ? obstacleWords(t, values) : ''
  if (because === undefined || obstacles === undefined) return summary
  return say(t, `reason.${code}`, { ...plainly(values), ...quoted, because, obstacles }) ?? summary
}

function obstacleWords(t: Translate, { obstacles, is_more: isMore }: Values): string | undefined {
  if (!Array.isArray(obstacles)) return undefined
  const said = obstacles.map((one: wire.MismatchBody) => say(t, `shared.${one.reason}`, mismatchValues(t, one)))
  if (said.includes(undefined)) return undefined
  return [...said, ...(isMore === true ? [t('reason.more')] : [])].join(', ')
}

/** What keeps a worker from a task. */
export function lackWords(
  t: Translate,
  mismatches: readonly wire.MismatchBody[] | undefined,
  sentences: readonly string[],
): string {
  return sentences
    .map((sentence, index) => {
      const mismatch = mismatches?.[index]
      return (mismatch && say(t, `lack.${mismatch.reason}`, mismatchValues(t, mismatch))) ?? sentence
    })
    .join(' ')
}

/** How a worker compares with others; what it does not say is left out. */
export function scoreWords(t: Translate, score: wire.WorkerVerdictBody['score']): string {
  if (score === undefined) return ''
  const { warm, cost, reputation, load } = score
  return [
    ...(warm ? [t('score.warm')] : []),
    ...(cost === null ? [] : [t('score.cost', { value: plain(cost) })]),
    t('score.reputation', { value: plain(reputation) }),
    t('score.load', { value: plain(load) }),
  ].join(' · ')
}

/** Why a worker gets nothing. */
export function workerWords(
  { t, language }: Speaker,
  { code, values }: wire.WorkerExplanationBody['reasons'][number],
): string {
  const { seconds, slots } = values
  if (code === 'full' && typeof slots !== 'number') return t('why.fullOpen', plainly(values))
  const span = typeof seconds === 'number' ? duration(seconds * 1_000, language) : ''
  return t(`why.${code}`, { ...plainly(values), span })
}

/** These are names, and stand in quotes; the others are numbers and versions. */
const NAMED = new Set(['skill', 'skill_unavailable', 'gpu_model', 'models', 'property'])

function mismatchValues(t: Translate, mismatch: wire.MismatchBody): Readonly<Record<string, string>> {
  const { reason } = mismatch
  if (reason === 'status') return { ...plainly({ ...mismatch }), has: statusWord(t, mismatch.has) }
  const isNamed = NAMED.has(reason)
  return {
    ...plainly({ ...mismatch }),
    ...quote(t, { ...mismatch }, isNamed ? ['needed', 'has'] : reason === 'software' ? ['has'] : []),
  }
}

/** Not as numbers of the language, which would round a price of 0.0004 to nothing. */
function plainly(values: Values): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, plain(value)]))
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : stringifyExact(value)
}

function quote(t: Translate, values: Values, names: readonly string[]): Readonly<Record<string, string>> {
  const there = names.filter((name) => values[name] !== undefined)
  return Object.fromEntries(there.map((name) => [name, inQuotes(t, values[name])]))
}

function inQuotes(t: Translate, value: unknown): string {
  if (typeof value === 'string') return t('reason.quoted', { text: value })
  if (value === null || (Array.isArray(value) && value.length === 0)) return t('reason.none')
  if (Array.isArray(value) && !isAnyNumber(value)) return value.map((one) => inQuotes(t, one)).join(', ')
  return plain(value)
}

function statusWord(t: Translate, status: unknown): string {
  const key = `status.${plain(status)}`
  return isText(key) ? t(key) : plain(status)
}

function isText(key: string): key is TextKey {
  return Object.hasOwn(en, key)
}

function say(t: Translate, key: string, values: Readonly<Record<string, string>>): string | undefined {
  return isKnown(key) ? t(key, values) : undefined
}

function isKnown(key: string): key is TextKey {
  return Object.hasOwn(reasonsEn, key)
}
