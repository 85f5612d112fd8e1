import type { Kind, Listed, Listing } from './storage.ts'

/** The records, and where a page goes on that ended before its limit. */
export function listingOf<K extends Kind>(records: readonly Listed<K>[], next: string | undefined): Listing<K> {
  return next === undefined ? records : Object.assign([...records], { next })
}

/** `before` of the page after this one; `undefined` when this was the last. */
export function nextPage<K extends Kind>(page: Listing<K>, limit: number): string | undefined {
  return page.next ?? (page.length < limit ? undefined : page.at(-1)?.id)
}
