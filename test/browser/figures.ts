// Figures of the dashboard in Chromium: npm run bench:dashboard
import { setMaxListeners } from 'node:events'
import { loadavg } from 'node:os'
import process from 'node:process'
import { gzipSync } from 'node:zlib'
import { createClient } from '@impresario/client'
import type { Browser, Page } from 'playwright-core'
import { newContext, openBrowser, signIn } from './browser.ts'
import { openStage, TOKENS } from './stage.ts'
import type { BrowserStage } from './stage.ts'

const LOADS = 7
const CHANGES = 40
const TABS = 200
const JOBS = 600
const ROUNDS = 3

const stage = await openStage()
const browser = await openBrowser()
try {
  say('load of the machine before', loadavg()[0]?.toFixed(1) ?? '')
  await measureLoad(browser, stage)
  await measureChanges(browser, stage)
  await measureTabs(stage)
} finally {
  await browser.close()
  await stage.close()
}

function say(what: string, figure: string): void {
  process.stdout.write(`${what}: ${figure}\n`)
}

function spread(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number): string => `${Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0)} ms`
  return `p50 ${at(0.5)}, p95 ${at(0.95)}, n = ${times.length}`
}

/** From the address bar to the first row of the job list: with an empty cache, and from another page. */
async function measureLoad(chromium: Browser, { address }: BrowserStage): Promise<void> {
  const cold: number[] = []
  const warm: number[] = []
  let sizes = new Map<string, number>()
  for (let load = 0; load < LOADS; load += 1) {
    const context = await newContext(chromium)
    const first = await context.newPage()
    await signIn(first, address)
    const session = await context.storageState()
    await context.close()
    const fresh = await chromium.newContext({ storageState: session })
    const page = await fresh.newPage()
    const bodies: Promise<readonly [string, number]>[] = []
    page.on('response', (response) => {
      if (!/\/(?:assets\/|theme\.js)/.test(response.url())) return
      bodies.push(response.body().then((body) => [response.url(), gzipSync(body).length] as const))
    })
    const begun = performance.now()
    await page.goto(`${address}/dashboard/jobs`, { waitUntil: 'commit' })
    await page.locator('[data-row]').first().waitFor()
    cold.push(performance.now() - begun)
    sizes = new Map(await Promise.all(bodies))
    await page.locator('aside a[href$="/dashboard/"]').first().click()
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    const clicked = performance.now()
    await page.locator('aside a[href$="/jobs"]').click()
    await page.locator('[data-row]').first().waitFor()
    warm.push(performance.now() - clicked)
    await fresh.close()
  }
  const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0)
  say('first route, gzip', `${(bytes / 1_024).toFixed(0)} kB in ${sizes.size} files`)
  say('first rows, empty cache', spread(cold))
  say('first rows, from another page', spread(warm))
}

/** From sending a command to its effect on the page of the job. */
async function measureChanges(chromium: Browser, { address, admin }: BrowserStage): Promise<void> {
  const context = await newContext(chromium)
  const page = await context.newPage()
  await signIn(page, address)
  const times: number[] = []
  for (let change = 0; change < CHANGES; change += 1) {
    const job = await admin.start('remind_customer', {})
    await page.goto(`${address}/dashboard/jobs/${job.id}`)
    await page.getByText('Sleeping').first().waitFor()
    await page.locator('aside').getByText('Live: changes appear at once').waitFor({ state: 'attached' })
    const painted = untilPainted(page)
    const sent = Date.now()
    await job.cancel()
    times.push((await painted) - sent)
  }
  say('command to pixel, one instance', spread(times))
  await context.close()
}

/** When the badge of the job has changed and the frame after it was drawn. */
function untilPainted(page: Page): Promise<number> {
  return page.evaluate<number>(`new Promise((resolve) => {
    const look = () => document.querySelector('h1')?.parentElement?.textContent?.includes('Cancelled')
    const done = () => requestAnimationFrame(() => requestAnimationFrame(() => resolve(Date.now())))
    const observer = new MutationObserver(() => { if (look()) { observer.disconnect(); done() } })
    observer.observe(document.body, { subtree: true, childList: true, characterData: true })
  })`)
}

/** What open tabs cost the jobs: rounds with and without two hundred streams, in turns. */
async function measureTabs({ address, admin }: BrowserStage): Promise<void> {
  const rates: Record<'without' | 'with', number[]> = { without: [], with: [] }
  const round = async (): Promise<number> => {
    const begun = performance.now()
    let left = JOBS
    const lane = async (): Promise<void> => {
      while (left > 0) {
        left -= 1
        const job = await admin.start('remind_customer', {})
        await job.cancel()
      }
    }
    await Promise.all(Array.from({ length: 32 }, lane))
    return JOBS / ((performance.now() - begun) / 1_000)
  }
  await round()
  let messages = 0
  for (let turn = 0; turn < ROUNDS; turn += 1) {
    rates.without.push(await round())
    const stop = new AbortController()
    setMaxListeners(2 * TABS, stop.signal)
    const listen = async (ready: () => void): Promise<void> => {
      const tab = createClient({ url: address, token: TOKENS.admin })
      for await (const { type } of tab.changes({ signal: stop.signal })) {
        if (type === 'ready') ready()
        messages += 1
      }
    }
    const tabs: Promise<void>[] = []
    for (let tab = 0; tab < TABS; tab += 1) {
      await new Promise<void>((resolve) => {
        tabs.push(listen(resolve))
      })
    }
    rates.with.push(await round())
    stop.abort()
    await Promise.all(tabs)
  }
  const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
  const [alone, beside] = [median(rates.without), median(rates.with)]
  say(`jobs per second without and with ${TABS} streams`, `${alone.toFixed(0)}, ${beside.toFixed(0)}`)
  say('cost of the streams', `${((1 - beside / alone) * 100).toFixed(0)} %, ${messages} messages`)
}
