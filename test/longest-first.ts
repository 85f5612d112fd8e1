import { BaseSequencer } from 'vitest/node'
import type { TestSpecification } from 'vitest/node'

/**
 * Files that take a minute or more, the longest first: if they started last, all cores but one would be idle at the
 * end.
 */
const LONG = [
  'packages/simulator/src/exhaustive/exhaust.test.ts',
  'packages/server/src/fuzz/endpoints.test.ts',
  'packages/simulator/src/bugs/bugs.test.ts',
  'packages/storage-embedded/src/conformance.test.ts',
  'packages/storage-postgres/src/conformance.test.ts',
  'packages/storage-redis/src/conformance.test.ts',
]

/** One project after the other, because their threads keep the modules of one; in each of them the long files first. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const projects = [...new Set(sorted.map(({ project }) => project.name))]
    const rankOf = (one: TestSpecification): number => projects.indexOf(one.project.name) * 100 + placeOf(one)
    return sorted.toSorted((a, b) => rankOf(a) - rankOf(b))
  }
}

function placeOf({ moduleId }: TestSpecification): number {
  const place = LONG.findIndex((file) => moduleId.endsWith(file))
  return place === -1 ? LONG.length : place
}
