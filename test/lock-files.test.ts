import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

interface LockedPackage {
  readonly version?: string
  readonly resolved?: string
  readonly link?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly hasInstallScript?: boolean
}
interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>
}

const LOCKS = [
  'package-lock.json',
  ...readdirSync(join(ROOT, 'bench/peers'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `bench/peers/${name}/package-lock.json`),
]

function lockOf(path: string): Lock {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as Lock
}

/** Whether a package can resolve a dependency: beside it, or in the `node_modules` of any directory above. */
function isLocked({ packages }: Lock, from: string, name: string): boolean {
  const parts = from === '' ? [] : from.split('/')
  for (let depth = parts.length; depth >= 0; depth -= 1) {
    if (packages[[...parts.slice(0, depth), 'node_modules', name].join('/')] !== undefined) return true
  }
  return false
}

/**
 * npm leaves packages of other platforms out of a lock file if they were not available when it was written. `npm ci`
 * then refuses the file on every machine, with EUSAGE.
 */
test.each(LOCKS)('[M-01] %s has everything that its packages ask for, on every platform', (path) => {
  const lock = lockOf(path)
  const missing: string[] = []
  for (const [place, entry] of Object.entries(lock.packages)) {
    const asked = {
      ...entry.dependencies,
      ...entry.optionalDependencies,
      ...(place === '' ? entry.devDependencies : {}),
    }
    for (const name of Object.keys(asked)) if (!isLocked(lock, place, name)) missing.push(`${place}: ${name}`)
  }
  expect(missing).toEqual([])
})

test('[M-01] every install script of a package is allowed or left out on purpose', () => {
  const { allowScripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly allowScripts: Readonly<Record<string, boolean>>
  }
  const scripts = Object.entries(lockOf('package-lock.json').packages)
    .filter(([, { hasInstallScript }]) => hasInstallScript === true)
    .map(([place]) => place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length))
  expect(scripts.filter((name) => allowScripts[name] === undefined && name !== 'fsevents')).toEqual([])
})
