import { readFileSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** TypeScript that users copy: fenced snippets of the documents, and the examples. */
interface Snippet {
  readonly place: string
  readonly code: string
}

function filesBelow(directory: string, end: string): readonly string[] {
  return readdirSync(join(ROOT, directory), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(end) && !file.includes('node_modules') && !file.startsWith('dist'))
    .map((file) => join(ROOT, directory, file))
}

function snippetsOf(file: string): readonly Snippet[] {
  const text = readFileSync(file, 'utf8')
  const blocks = [...text.matchAll(/```(?:ts|typescript|tsx|js)\b[^\n]*\n([\s\S]*?)```/g)]
  return blocks.map(([, code = ''], index) => ({ place: `${relative(ROOT, file)}, snippet ${index + 1}`, code }))
}

const documents = ['README.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md'].map((file) => join(ROOT, file))
const snippets: readonly Snippet[] = [
  ...[...documents, ...filesBelow('docs', '.md')].flatMap(snippetsOf),
  ...filesBelow('examples/src', '.ts')
    .filter((file) => !file.endsWith('.test.ts'))
    .map((file) => ({ place: relative(ROOT, file), code: readFileSync(file, 'utf8') })),
]

const FORBIDDEN: readonly (readonly [string, RegExp])[] = [
  ['safeParse', /\bsafeParse\w*\(/],
  ['parse of a schema', /\.(?:output|input|outcomes\.\w+)\.parse\w*\(/],
  ['a cast', /[\w)\]}] as (?!const\b)[\w{(['"]/],
  ['any', /[:<,|] ?any\b/],
  ['a non-null assertion', /[\w)\]]!(?=[.)\],;[])/],
  ['a comment that hides an error', /@ts-(?:ignore|nocheck|expect-error)/],
]

/** Without text that only looks like code: names in imports and exports, comments, and strings. */
function stripped(code: string): string {
  return code
    .replaceAll(/^(?:import|export) (?:type )?(?:\*|\{[^}]*\})[^\n]*$/gm, '')
    .replaceAll(/(?<!:)\/\/(?! ?@ts-)[^\n]*|\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\$]|\\.|\$(?!\{))*`/g, "''")
}

test('[B-14] no document and no example needs a cast, or parses a result again', () => {
  expect(snippets.length).toBeGreaterThan(30)
  const found = snippets.flatMap(({ place, code }) =>
    stripped(code)
      .split('\n')
      .flatMap((line) =>
        FORBIDDEN.filter(([, pattern]) => pattern.test(line)).map(([what]) => `${place}: ${what} in: ${line.trim()}`),
      ),
  )
  expect(found).toEqual([])
})

function isForbidden(line: string): boolean {
  return FORBIDDEN.some(([, pattern]) => pattern.test(stripped(line)))
}

test('[B-14] each of them would be found', () => {
  const bad = [
    'const x = schema.safeParse(y)',
    'media.cut.output.parse(data)',
    'const a = b as Foo',
    'const a = f() as { x: 1 }',
    'let a: any = 1',
    'map.get(k)!.x',
    '// @ts-expect-error later',
  ]
  expect(bad.filter((line) => !isForbidden(line))).toEqual([])
  const good = [
    "const a = ['x'] as const",
    "import { a as b } from 'c'",
    "const s = 'x as Y'",
    'if (!a.b) return // as Foo',
  ]
  expect(good.filter(isForbidden)).toEqual([])
})
