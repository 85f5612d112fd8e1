import { basename } from 'node:path'
import { patternMatcher } from '../config/patterns.ts'

/** Files that programs are still writing, and those that they keep for themselves. */
const TEMPORARY = /(?:^\.|^~\$|~$|^#.*#$|\.(?:part|partial|crdownload|download|tmp|temp|swp|swx|lock|filepart)$)/i

/** Whether a path under a watched folder is left out. Hidden folders are, with everything in them. */
export function ignoreRule(patterns: readonly string[], dataDirectory: string): (path: string) => boolean {
  const isNamed = patternMatcher(patterns)
  return (path) =>
    TEMPORARY.test(basename(path)) || path === dataDirectory || path.startsWith(`${dataDirectory}/`) || isNamed(path)
}

/** Every part of the path below the folder counts: what is in a hidden folder is hidden. */
export function isIgnoredUnder(folder: string, path: string, isIgnored: (path: string) => boolean): boolean {
  let at = folder.length
  while (at !== -1) {
    at = path.indexOf('/', at + 1)
    if (isIgnored(at === -1 ? path : path.slice(0, at))) return true
  }
  return false
}
