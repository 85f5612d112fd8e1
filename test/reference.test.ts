import { join } from 'node:path'
import { expect, test } from 'vitest'
import { httpApiPage } from './http-api-page.ts'
import { configurationPage, errorsPage, limitsPage, metricsPage, workerConfigurationPage } from './reference-pages.ts'

const REFERENCE = join(import.meta.dirname, '../docs/reference')

test.for([
  ['configuration', configurationPage],
  ['errors', errorsPage],
  ['http-api', httpApiPage],
  ['limits', limitsPage],
  ['metrics', metricsPage],
  ['worker-configuration', workerConfigurationPage],
] as const)('[M-04] docs/reference/%s.md says what the code says; else run `npm run docs`', async ([name, page]) => {
  await expect(await page()).toMatchFileSnapshot(join(REFERENCE, `${name}.md`))
})
