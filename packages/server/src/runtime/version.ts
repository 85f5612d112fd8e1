import { readFileSync } from 'node:fs'

/** The version of this package; it lies beside the sources and beside what is built from them. */
export const VERSION = versionIn(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

function versionIn(text: string): string {
  const found: unknown = JSON.parse(text)
  const version: unknown = typeof found === 'object' && found !== null && 'version' in found ? found.version : undefined
  return typeof version === 'string' ? version : '0.0.0'
}
