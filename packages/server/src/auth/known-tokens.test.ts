import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { settingsOf } from '../config/config.ts'
import { loadCredentials } from './credentials.ts'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))

/** Where readers copy from. */
const PLACES = [
  'README.md',
  'SECURITY.md',
  'docs',
  'deploy',
  'examples/README.md',
  'examples/python-worker',
  'examples/src',
]
const TOKEN_SHAPES = [
  /(?:CLIENT|WORKER|IMPRESARIO)_TOKEN["']?\s*[=:]\s*["']?([\w.~+/-]{3,}=*)/g,
  /\btokens?(?:["']?\s*[=:]\s*\[?)\s*["']([^"'$<{]{3,})["']/g,
  /X-(?:Client|Worker)-Token:\s*([\w.~+/-]{3,}=*)/gi,
  /--token[ =]([\w.~+/-]{3,})/g,
]

function* texts(): Generator<readonly [string, string]> {
  for (const place of PLACES) {
    if (/\.\w+$/.test(place)) {
      yield [place, readFileSync(`${ROOT}${place}`, 'utf8')]
      continue
    }
    for (const entry of readdirSync(`${ROOT}${place}`, { withFileTypes: true, recursive: true })) {
      if (!entry.isFile() || /\.(?:svg|png|test\.ts)$/.test(entry.name)) continue
      const path = `${entry.parentPath}/${entry.name}`
      yield [path.slice(ROOT.length), readFileSync(path, 'utf8')]
    }
  }
}

test('[H-03] no token that stands in a document or an example opens a server to the network', () => {
  const found = new Map<string, string>()
  for (const [path, text] of texts()) {
    for (const shape of TOKEN_SHAPES) {
      for (const [, token = ''] of text.matchAll(shape)) found.set(token, path)
    }
  }
  expect([...found.keys()]).toContain('dev-client-')
  /** To be added to WELL_KNOWN, or to be written so that they are plainly no tokens. */
  const accepted = [...found].filter(([clientToken]) => {
    try {
      return loadCredentials(settingsOf({ apiHost: '0.0.0.0', clientToken })).clients.length > 0
    } catch {
      return false
    }
  })
  expect(accepted).toEqual([])
})
