import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readDefinition } from '@impresario/automations'
import { parse } from 'yaml'
import { expect, test } from 'vitest'

const PAGE = readFileSync(fileURLToPath(new URL('../docs/guide/automations.md', import.meta.url)), 'utf8')

/** Built-in tools by name; tasks and blueprints are those of the reader. */
const TOOLS = {
  named: (name: string) =>
    /^(task|blueprint)\.|^(http\.request|log|transform|delay|job\.start|event\.publish)$/.test(name)
      ? { check: () => [] }
      : undefined,
  similar: () => [],
}

function blocksOf(language: string): readonly string[] {
  return [...PAGE.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, code = '']) => code)
}

test('[K-02] [M-04] every automation of the guide and its cookbook is one that can be created', () => {
  const written = blocksOf('json').map((text): unknown => JSON.parse(text))
  const inFiles = blocksOf('yaml').flatMap((text) => (parse(text) as { readonly automations: unknown[] }).automations)
  const automations = [...written, ...inFiles].filter(
    (one) => typeof one === 'object' && one !== null && 'pipeline' in one,
  )
  expect(automations.length).toBeGreaterThanOrEqual(9)
  for (const one of automations) {
    const context = { tools: TOOLS, timezone: 'UTC', createdAt: Date.UTC(2026, 0, 1) }
    expect(readDefinition(one, context).pipeline.steps.length).toBeGreaterThan(0)
  }
})
