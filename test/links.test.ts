import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const NOT_OURS = /^(\.|node_modules$|dist$|coverage$|impresario-data$)/

/** Every page of the repository, without installed, built or tool-generated files. */
function pagesIn(directory: string): readonly string[] {
  return readdirSync(join(ROOT, directory), { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return NOT_OURS.test(entry.name) ? [] : pagesIn(path)
    return entry.name.endsWith('.md') ? [path] : []
  })
}

interface Link {
  readonly line: number
  readonly target: string
}

/** Without code blocks and spans: links there are examples. */
function proseOf(text: string): string {
  const blank = (code: string): string => code.replaceAll(/[^\n]/g, ' ')
  return text.replaceAll(/^```.*?^```/gms, blank)
}

function linksOf(text: string): readonly Link[] {
  return [...proseOf(text).matchAll(/\]\(<?([^()\s>]+)>?\)/g)]
    .map((found) => ({ line: text.slice(0, found.index).split('\n').length, target: found[1] ?? '' }))
    .filter(({ target }) => !/^[a-z][a-z+.-]*:/i.test(target))
}

/** As the usual renderers generate them: lower case, words joined by hyphens, everything else left out. */
function anchorsOf(text: string): ReadonlySet<string> {
  const seen = new Map<string, number>()
  const anchors = [...proseOf(text).matchAll(/^#{1,6} +(.+?) *#*$/gm)].map((found) => {
    const title = (found[1] ?? '').replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = title.replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-')
    const before = seen.get(slug) ?? 0
    seen.set(slug, before + 1)
    return before === 0 ? slug : `${slug}-${before}`
  })
  return new Set(anchors)
}

function problemOf(page: string, { line, target }: Link): string | undefined {
  const [path = '', anchor] = target.split('#', 2)
  const file = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), decodeURIComponent(path))
  const where = `${page}:${line}: ${target}`
  if (relative(ROOT, file).startsWith('..')) return `${where} leads out of the repository`
  if (!existsSync(file)) return `${where} leads to nothing`
  if (anchor === undefined || !file.endsWith('.md') || !statSync(file).isFile()) return undefined
  return anchorsOf(readFileSync(file, 'utf8')).has(anchor) ? undefined : `${where} names a heading that is not there`
}

test('all links between the pages of the repository lead to files and headings that exist', () => {
  const pages = pagesIn('')
  expect(pages).toContain('README.md')
  const problems = pages.flatMap((page) =>
    linksOf(readFileSync(join(ROOT, page), 'utf8')).map((link) => problemOf(page, link)),
  )
  expect(problems.length).toBeGreaterThan(100)
  expect(problems.filter((problem) => problem !== undefined)).toEqual([])
})

test('links in code are examples; headings that come twice are told apart', () => {
  const page = '# A b\n\n[x](y.md#z)\n\n```md\n[no](no.md)\n```\n\n## `C`, d!\n\n## A b\n\n[far](https://example.com)\n'
  expect(linksOf(page)).toEqual([{ line: 3, target: 'y.md#z' }])
  expect([...anchorsOf(page)]).toEqual(['a-b', 'c-d', 'a-b-1'])
})
