// Pictures of every page in both themes and widths: npm run screenshots [-- <directory> [<page,…|all> [<locale>]]]
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { newContext, openBrowser, PAGES, signIn, THEMES, WIDTHS } from './browser.ts'
import type { Theme, Width } from './browser.ts'
import { openStage } from './stage.ts'

const directory = resolve(process.argv[2] ?? 'dist/screenshots')
const [pagesNamed = 'all', locale = 'en-US'] = process.argv.slice(3)
const only = pagesNamed === 'all' ? undefined : pagesNamed.split(',')
await mkdir(directory, { recursive: true })
const stage = await openStage()
const browser = await openBrowser()
const pages = {
  ...PAGES,
  agent: `agents/${stage.agent}`,
  automation: `automations/${stage.automation}`,
  'automation-edit': `automations/${stage.automation}/edit`,
  run: `runs/${stage.run}`,
  event: `events?entry=${stage.event}`,
  audit: 'events?tab=audit',
  'audit-entry': `events?tab=audit&entry=${stage.auditEntry}`,
  schedule: 'schedules?entry=tidy',
  'schedule-off': 'schedules?entry=off',
  published: 'events?tab=published',
  'published-entry': `events?tab=published&entry=${stage.published}`,
  delivery: `webhooks?entry=${stage.delivery}`,
  endpoints: 'webhooks?tab=endpoints',
  endpoint: `webhooks?tab=endpoints&entry=${stage.endpoint}`,
  'endpoint-disabled': `webhooks?tab=endpoints&entry=${stage.disabledEndpoint}`,
  'job-run': `jobs/${stage.run}`,
  'job-finished': `jobs/${stage.finishedJob}`,
  'job-asking': `jobs/${stage.askingJob}`,
  'job-log': `jobs/${stage.askingJob}?tab=log`,
  'job-files': `jobs/${stage.askingJob}?tab=files`,
  'job-attempts': `jobs/${stage.finishedJob}?tab=tasks`,
  'job-data': `jobs/${stage.finishedJob}?tab=data`,
  'job-quarantined': `jobs/${stage.stuckJob}`,
  'job-waiting': `jobs/${stage.waitingJob}?tab=tasks`,
  'job-hostile': `jobs/${stage.hostileJob}?tab=data`,
}
try {
  for (const theme of THEMES) {
    for (const width of Object.keys(WIDTHS) as Width[]) await picture(theme, width)
  }
} finally {
  await browser.close()
  await stage.close()
}
process.stdout.write(`${directory}\n`)

async function picture(theme: Theme, width: Width): Promise<void> {
  const context = await newContext(browser, { theme, width, locale })
  const page = await context.newPage()
  page.on('pageerror', (error) => process.stderr.write(`${error.message}\n`))
  await page.goto(`${stage.address}/dashboard`)
  await page.locator('input[type=password]').waitFor()
  if (only === undefined) await page.screenshot({ path: join(directory, `sign-in-${theme}-${width}.png`) })
  await signIn(page, stage.address)
  for (const [name, path] of Object.entries(pages)) {
    if (only?.includes(name) === false) continue
    await page.goto(`${stage.address}/dashboard/${path}`)
    await page.locator('main#content h1').waitFor()
    // The stream of changes stays open, so that the network is never idle.
    await page.locator('#content [role=status]').first().waitFor({ state: 'detached' })
    await page.waitForTimeout(400)
    await page.screenshot({ path: join(directory, `${name}-${theme}-${width}.png`) })
  }
  const outside = { 'approval-page': stage.approvalPage, 'docs-page': `${stage.address}/_public/docs` }
  for (const [name, address] of Object.entries(outside)) {
    if (only?.includes(name) === false) continue
    await page.goto(address)
    await page.locator('main').waitFor()
    if (name === 'docs-page') await page.locator('.opblock-tag').first().click()
    if (name === 'docs-page') await page.locator('.opblock').first().waitFor()
    await page.screenshot({ path: join(directory, `${name}-${theme}-${width}.png`) })
  }
  await context.close()
}
