import { entriesEn } from './entries-en.ts'
import { eventsEn } from './events-en.ts'
import type { TextKey, Translate } from './translate.ts'

/** The events that have words, as the history names them. */
export const EVENT_TYPES: readonly string[] = Object.keys(eventsEn).map((key) => key.slice('event.'.length))

/** The words for an event; one that this version does not know is shown as it is. */
export function eventWords(t: Translate, type: string): string {
  return wordsOf(t, `event.${type}`) ?? type.replaceAll('_', ' ')
}

/** The words for what somebody did, as the audit log names it. */
export function auditWords(t: Translate, action: string): string {
  return wordsOf(t, `audit.${action}`) ?? action.replaceAll('_', ' ')
}

function wordsOf(t: Translate, key: string): string | undefined {
  return isKnown(key) ? t(key) : undefined
}

function isKnown(key: string): key is TextKey {
  return Object.hasOwn(eventsEn, key) || Object.hasOwn(entriesEn, key)
}
