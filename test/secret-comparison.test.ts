import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** Where secrets arrive from outside or are checked. */
const PACKAGES = ['server', 'webhooks', 'worker', 'protocol']

const SECRET = String.raw`[\w.#?!]*(?:token|secret|signature|digest)\w*`
/** Values that only describe a thing, or whether it exists, reveal nothing about a secret. */
const HARMLESS = /^(?:undefined|null|true|false|''|""|'[\w ]*'|"[\w ]*"|\d[\d_]*|typeof)$/
const COMPARED = new RegExp(String.raw`(typeof )?(\b${SECRET})\s*[!=]==?\s*('[^']*'|"[^"]*"|[\w.#]+)`, 'gi')
const REVERSED = new RegExp(String.raw`('[^']*'|"[^"]*"|[\w.#]+)\s*[!=]==?\s*(${SECRET}\b)`, 'gi')

/** Comparisons whose operator would stop at the first byte that differs. */
function leaksIn(text: string): readonly string[] {
  const leaks: string[] = []
  for (const line of text.split('\n')) {
    if (/^\s*(?:\/\/|\*|\/\*)/.test(line)) continue
    for (const [all, kind, name = '', other = ''] of line.matchAll(COMPARED)) {
      if (kind === undefined && !HARMLESS.test(other) && !isCount(name)) leaks.push(all)
    }
    for (const [all, other = '', name = ''] of line.matchAll(REVERSED)) {
      if (!HARMLESS.test(other) && !isCount(name) && !line.includes(`typeof ${other}`)) leaks.push(all)
    }
  }
  return leaks
}

/** Lengths, sizes and positions are not secrets. */
function isCount(name: string): boolean {
  return /\.(?:length|size|type|kind|use|length\w*)$|(?:Count|Max|Bytes|Chars|At|Ms|Url|Path|Kind|Type|Name)$/.test(
    name,
  )
}

test('[H-08] the rule finds what it is meant to find, and leaves alone what is harmless', () => {
  const bad = [
    'if (token === given) {',
    'return given !== this.#secret',
    'a.signature == b',
    'x === digest',
    'token === other.token',
  ]
  for (const line of bad) expect({ line, leaks: leaksIn(line).length > 0 }).toEqual({ line, leaks: true })
  const good = [
    'if (token === undefined) {',
    "typeof token === 'string'",
    "settings.clientToken !== ''",
    'tokens.length === 0',
    'sameSecret(token, given)',
    '// token === given',
    "error.code === 'token'",
  ]
  for (const line of good) expect({ line, leaks: leaksIn(line) }).toEqual({ line, leaks: [] })
})

test('[H-08] no secret is compared with an operator: the time that takes would tell how much of a guess is right', async () => {
  const found: string[] = []
  for (const name of PACKAGES) {
    const root = join(import.meta.dirname, '..', 'packages', name, 'src')
    const files = await readdir(root, { recursive: true })
    for (const file of files.filter((path) => path.endsWith('.ts') && !/\.(?:test|fixture|types)\.ts$/.test(path))) {
      const leaks = leaksIn(await readFile(join(root, file), 'utf8'))
      found.push(...leaks.map((leak) => `packages/${name}/src/${file}: ${leak}`))
    }
  }
  expect(found).toEqual([])
})
