import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Beside this module once it is built; in `dist` while it is read from its source. */
const PLACES = [join(import.meta.dirname, 'app'), join(import.meta.dirname, '../dist/app')]

/** Where the built application lies; `undefined` while it is not built. */
export function appDirectory(): string | undefined {
  return PLACES.find((place) => existsSync(join(place, 'index.html')))
}
