// Figures of the dashboard in Chromium:
//
//   npm run bench:dashboard -- [--storage memory|file|redis|postgres] [--jobs 50000] [--moments 50000] [--parts 1000]
//                              [--tabs 200] [--only load,lists,changes,long,tabs]
//
// `--jobs` fills the storage before the server starts (not in memory). Everything is real: server, jobs, browser.
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism, loadavg } from 'node:os'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { newContext, openBrowser, signIn } from './browser.ts'
import { filledStorage, SPREAD, STORAGES } from './filled-storage.ts'
import { fanOut, spreadOut } from './long-jobs.ts'
import { openStage, TOKENS } from './stage.ts'
import type { BrowserStage } from './stage.ts'

const { values } = parseArgs({
  options: {
    storage: { type: 'string', default: 'memory' },
    jobs: { type: 'string', default: '0' },
    moments: { type: 'string', default: '50000' },
    parts: { type: 'string', default: '1000' },
    tabs: { type: 'string', default: '200' },
    only: { type: 'string', default: 'load,lists,changes,long,tabs' },
  },
})
const LOADS = 20
const CHANGES = 40
const ANSWERS = 60
const TABS = Number(values.tabs)
const JOBS = 2_000
const ROUNDS = 7
const parts = new Set(values.only.split(','))
const kind = STORAGES.find((one) => one === values.storage)
if (kind === undefined) throw new Error(`--storage is one of ${STORAGES.join(', ')}.`)

say('load of the machine before', loadavg()[0]?.toFixed(1) ?? '')
const storage = await filledStorage(kind, Number(values.jobs))
say('storage', `${kind}, ${kind === 'memory' ? 0 : values.jobs} jobs; load now ${loadavg()[0]?.toFixed(1) ?? ''}`)
const stage = await openStage({ storageUrl: storage.url }, [fanOut])
const browser = await openBrowser()
try {
  if (parts.has('lists')) await measureLists(stage)
  if (parts.has('load')) await measureLoad(browser, stage)
  if (parts.has('changes')) await measureChanges(browser, stage)
  if (parts.has('long')) await measureLong(browser, stage)
  if (parts.has('tabs')) await measureTabs(stage)
} finally {
  await browser.close()
  await stage.close()
  await storage.remove()
}

function say(what: string, figure: string): void {
  process.stdout.write(`${what}: ${figure}\n`)
}

function spread(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number): string => `${Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0)} ms`
  return `p50 ${at(0.5)}, p95 ${at(0.95)}, n = ${times.length}`
}

/** The answers behind the list of jobs, as its pages ask for them. */
async function measureLists({ address }: BrowserStage): Promise<void> {
  const ask = async (query: string): Promise<readonly [number, Response]> => {
    const begun = performance.now()
    const answer = await fetch(`${address}/api/v1/jobs?limit=50&${query}`, {
      headers: { 'x-client-token': TOKENS.admin },
    })
    await answer.arrayBuffer()
    return [performance.now() - begun, answer]
  }
  const many = async (query: string): Promise<string> => {
    const times: number[] = []
    let cursor = ''
    for (let at = 0; at < ANSWERS; at += 1) {
      const [ms, answer] = await ask(`${query}${cursor}`)
      times.push(ms)
      const next = answer.headers.get('x-next-cursor')
      cursor = next === null ? '' : `&cursor=${next}`
    }
    return spread(times)
  }
  await ask('')
  say('list answer, page after page', await many(''))
  say('list answer, finished', await many('status=finished'))
  say('list answer, a blueprint with few jobs', await many('blueprint=remind_customer'))
  say('list answer, a blueprint of one job in 500', await many(`blueprint=${SPREAD}`))
  const times: number[] = []
  let reached = ''
  for (let at = 0; at < 10; at += 1) {
    const [ms, answer] = await ask('q=no-job-says-this')
    times.push(ms)
    const back = answer.headers.get('x-looked-back-to')
    reached =
      back === null ? 'all was looked through' : `looked back to ${new Date(Number(back) * 1_000).toISOString()}`
  }
  say('search without a hit', `${spread(times)}; ${reached}`)
}

/** From the address bar to the first row of the job list: with an empty cache, and from another page. */
async function measureLoad(chromium: Browser, { address }: BrowserStage): Promise<void> {
  const cold: number[] = []
  const warm: number[] = []
  const requests = new Map<string, number[]>()
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
    for (const [path, ms] of await answersOf(page)) requests.set(path, [...(requests.get(path) ?? []), ms])
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
  for (const [path, times] of requests) say(`  ${path}`, spread(times))
}

/** What the page asked the API for, and how long each answer took. */
function answersOf(page: Page): Promise<readonly (readonly [string, number])[]> {
  return page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .filter(({ name }) => name.includes('/api/'))
      .map(({ name, duration }) => [new URL(name).pathname, duration] as const),
  )
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

/** A job with a long history and a wide fan-out: how soon it is drawn, and whether it stays fluid. */
async function measureLong(chromium: Browser, { server, address, admin }: BrowserStage): Promise<void> {
  const wide = Number(values.parts)
  const rounds = Math.max(1, Math.ceil(Number(values.moments) / wide))
  const fan = await spreadOut(server, admin, { parts: wide, rounds: 1 })
  const context = await newContext(chromium)
  const page = await context.newPage()
  await signIn(page, address)
  const drawn: number[] = []
  for (let load = 0; load < LOADS; load += 1) {
    await page.goto(`${address}/dashboard/jobs`)
    await page.locator('[data-row]').first().waitFor()
    const begun = performance.now()
    await page.goto(`${address}/dashboard/jobs/${fan}`, { waitUntil: 'commit' })
    await page.getByRole('region', { name: 'Timeline' }).getByText(`× ${wide}`).waitFor()
    drawn.push(performance.now() - begun)
  }
  say(`fan-out of ${wide}, from the address to its row`, spread(drawn))
  const clicked = performance.now()
  await page.getByRole('button', { name: `× ${wide}` }).click()
  await page.getByRole('region', { name: 'Timeline' }).locator('li').nth(10).waitFor()
  say('fan-out opened', `${Math.round(performance.now() - clicked)} ms`)
  const long = await spreadOut(server, admin, { parts: wide, rounds })
  await page.goto(`${address}/dashboard/jobs/${long}?tab=events`)
  await page.getByRole('region', { name: 'Events' }).locator('li').first().waitFor()
  const count = await page.getByRole('tab', { name: /Events/, selected: true }).textContent()
  say('a long job has', `${count ?? ''} (moments ordered: ${rounds * wide})`)
  say('longest task while its events scroll', await longestTask(page, 'Events'))
  await page.getByRole('tab', { name: /Timeline/ }).click()
  await page
    .getByRole('button', { name: `× ${wide}` })
    .first()
    .click()
  say('longest task while its timeline scrolls', await longestTask(page, 'Timeline'))
  await context.close()
}

/** Scrolls a region from its top to its end, step by step, and gives the longest time without an answer. */
async function longestTask(page: Page, name: string): Promise<string> {
  const longest = await page.evaluate<number>(`new Promise((resolve) => {
    const region = document.querySelector('[role=region][aria-label="${name}"]')
    const tasks = [0]
    const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration)))
    observer.observe({ type: 'longtask' })
    const steps = 120
    let step = 0
    const scroll = () => {
      region.scrollTop = (region.scrollHeight * step) / steps
      step += 1
      if (step <= steps) requestAnimationFrame(scroll)
      else setTimeout(() => resolve(Math.max(...tasks)), 300)
    }
    requestAnimationFrame(scroll)
  })`)
  return longest === 0 ? 'below 50 ms' : `${Math.round(longest)} ms`
}

/**
 * What open tabs cost the jobs: rounds beside as many connections that are idle, and beside their streams, in turns. This process
 * (the server and its caller) keeps to one core, and the readers to another: tabs run on other machines in life.
 */
async function measureTabs({ address, admin }: BrowserStage): Promise<void> {
  type Round = { readonly perS: number; readonly cpuMs: number }
  const rounds: Record<'idle' | 'reading', Round[]> = { idle: [], reading: [] }
  const apart = availableParallelism() > 1
  const keepOn = (core: number, pid: number | undefined): void => {
    if (apart) execFileSync('taskset', ['-acp', String(core), String(pid)], { stdio: 'ignore' })
  }
  const round = async (): Promise<Round> => {
    const begun = performance.now()
    const used = process.cpuUsage()
    let left = JOBS
    const lane = async (): Promise<void> => {
      while (left > 0) {
        left -= 1
        const job = await admin.start('remind_customer', {})
        await job.cancel()
      }
    }
    await Promise.all(Array.from({ length: 32 }, lane))
    const { user, system } = process.cpuUsage(used)
    return { perS: JOBS / ((performance.now() - begun) / 1_000), cpuMs: (user + system) / 1_000 / JOBS }
  }
  const beside = async (mode: 'idle' | 'reading'): Promise<number> => {
    const readers = fork(new URL('tabs-main.ts', import.meta.url), [address, TOKENS.admin, String(TABS), mode])
    keepOn(1, readers.pid)
    await once(readers, 'message')
    rounds[mode].push(await round())
    readers.send('end')
    const [told] = (await once(readers, 'message')) as [number]
    await once(readers, 'exit')
    return told
  }
  keepOn(0, process.pid)
  await round()
  let messages = 0
  for (let turn = 0; turn < ROUNDS; turn += 1) {
    await beside('idle')
    messages += await beside('reading')
  }
  const median = (of: readonly Round[], figure: keyof Round): number =>
    of.map((one) => one[figure]).toSorted((a, b) => a - b)[of.length >> 1] ?? 0
  const figures = (figure: keyof Round): readonly [number, number] => [
    median(rounds.idle, figure),
    median(rounds.reading, figure),
  ]
  const [alone, slowed] = figures('perS')
  say('cores', apart ? 'the server and its caller on one, the readers on another' : 'one for all')
  say(
    `jobs per second beside ${TABS} idle connections and beside ${TABS} streams`,
    `${alone.toFixed(0)}, ${slowed.toFixed(0)}`,
  )
  // Each job is created, falls asleep and is cancelled.
  say('changes per second', `${(slowed * 3).toFixed(0)}; ${messages} messages went out`)
  const [cpu, more] = figures('cpuMs')
  say('CPU of the server and its caller for each job', `${cpu.toFixed(2)} ms, ${more.toFixed(2)} ms`)
  say(
    'cost of the streams',
    `${((more / cpu - 1) * 100).toFixed(1)} % of CPU, ${((1 - slowed / alone) * 100).toFixed(1)} % of jobs`,
  )
}
