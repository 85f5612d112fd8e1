import { eventsEn } from './events-en.ts'
import type { TextKey, Translate } from './translate.ts'

/** The words for an event; one that this version does not know is shown as it is. */
export function eventWords(t: Translate, type: string): string {
  const key = `event.${type}`
  return isEventKey(key) ? t(key) : type.replaceAll('_', ' ')
}

function isEventKey(key: string): key is TextKey {
  return Object.hasOwn(eventsEn, key)
}
