/** Searching an index, without anything that writes one: loads in a few milliseconds. */
export { DocumentSearch } from './index/search.ts'
export type { Hit, SearchOptions, SearchResult } from './index/search.ts'
