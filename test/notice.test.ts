import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

interface LockedPackage {
  readonly license?: string
  readonly dev?: boolean
  readonly link?: boolean
}
interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
}

function lockedPackages(): Readonly<Record<string, LockedPackage>> {
  return (JSON.parse(read('package-lock.json')) as { readonly packages: Record<string, LockedPackage> }).packages
}

/** The packages that are installed without development dependencies, with their licenses. */
function installed(): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>()
  for (const [place, { license, dev, link }] of Object.entries(lockedPackages())) {
    if (!place.includes('node_modules/') || dev === true || link === true) continue
    const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length)
    found.set(name, (found.get(name) ?? new Set()).add(license ?? 'none'))
  }
  return found
}

/** The dependencies of our own packages, by package. */
function asked(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const place of ['packages', 'apps']) {
    for (const name of readdirSync(join(ROOT, place))) {
      const { dependencies = {} } = JSON.parse(read(`${place}/${name}/package.json`)) as Manifest
      for (const one of Object.keys(dependencies)) {
        if (!one.startsWith('@impresario/')) found.set(one, [...(found.get(one) ?? []), name].toSorted())
      }
    }
  }
  return found
}

test('[M-01] NOTICE names every package that runs in production, with its licence, and no other', () => {
  const lines = read('NOTICE')
    .split('Packages and their licences\n---------------------------\n\n')[1]
    ?.trim()
    .split('\n')
    .map((line) => line.split(/ {2,}/).map((part) => part.trim()))
  const expected = [...installed()].map(([name, licences]) => [name, [...licences].toSorted().join(', ')])
  const byName = (a: readonly string[], b: readonly string[]): number => ((a[0] ?? '') < (b[0] ?? '') ? -1 : 1)
  expect(lines?.toSorted(byName)).toEqual(expected.toSorted(byName))
})

test('[M-01] NOTICE names the licence of Graphviz, which lies inside of another package', () => {
  expect(read('NOTICE')).toMatch(
    /@viz-js\/viz\s+holds Graphviz[^.]*\. Graphviz is licensed under the Eclipse Public License/,
  )
})

test('[M-01] the page about dependencies has a reason for each of them, and for who uses it', () => {
  const rows = read('docs/explain/dependencies.md')
    .split('\n')
    .map((line) => /^\| `(?<name>[^`]+)` \| (?<users>[^|]+) \| (?<why>[^|]+) \|$/.exec(line)?.groups)
    .filter((row) => row !== undefined)
  const described = rows.map(({ name, users = '' }) => [name, users.split(', ').toSorted()])
  const expected = [...asked()].map(([name, users]) => [name, users])
  expect(Object.fromEntries(described)).toEqual(Object.fromEntries(expected))
  expect(rows.filter(({ why = '' }) => why.trim().length < 10)).toEqual([])
})

test('[M-01] the production server does not have tsx, nor what it brings', () => {
  const packages = lockedPackages()
  for (const name of ['tsx', 'esbuild', 'vitest', 'typescript']) {
    expect({ name, isDev: packages[`node_modules/${name}`]?.dev }).toEqual({ name, isDev: true })
  }
})
