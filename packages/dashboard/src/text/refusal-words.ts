import { ApiError } from '../data/api-error.ts'
import { refusalsEn } from './refusals-en.ts'
import type { Translate } from './translate.ts'

export interface RefusalWords {
  /** In the language of the page. */
  readonly title: string
  /** What the server said, in English: it names what exactly is wrong. */
  readonly detail: string | undefined
}

/** A failure in the words of the page, by its code. One of a newer server, or of the page itself, is shown as it is. */
export function refusalWords(t: Translate, error: unknown): RefusalWords {
  if (!(error instanceof ApiError)) {
    return { title: error instanceof Error ? error.message : String(error), detail: undefined }
  }
  if (error.status === 0) return { title: t('common.unreachable'), detail: undefined }
  const key = `refusal.${error.code}`
  if (!isKnown(key)) return { title: error.message, detail: undefined }
  const title = t(key)
  return { title, detail: error.message === '' || error.message === title ? undefined : error.message }
}

function isKnown(key: string): key is keyof typeof refusalsEn {
  return Object.hasOwn(refusalsEn, key)
}
