import { chromium } from 'playwright-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { TOKENS } from './stage.ts'

export const WIDTHS = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 860 } } as const
export type Width = keyof typeof WIDTHS
export const THEMES = ['light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

/** Debian's Chromium, without a window. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
}

export interface Look {
  readonly theme?: Theme
  readonly width?: Width
  readonly locale?: string
}

export function newContext(browser: Browser, look: Look = {}): Promise<BrowserContext> {
  const { theme = 'light', width = 'desktop', locale = 'en-US' } = look
  return browser.newContext({
    viewport: WIDTHS[width],
    colorScheme: theme,
    locale,
    timezoneId: 'Europe/Madrid',
    reducedMotion: 'reduce',
    ...(width === 'phone' ? { hasTouch: true, deviceScaleFactor: 2 } : {}),
  })
}

/** Signs in as somebody would: with a token, on the page. */
export async function signIn(page: Page, address: string, who: keyof typeof TOKENS = 'admin'): Promise<void> {
  await page.goto(`${address}/dashboard`)
  await page.locator('input[type=password]').fill(TOKENS[who])
  await page.locator('button[type=submit]').click()
  await page.locator('main#content h1').waitFor()
}

/** The pages with an address of their own. */
export const PAGES: Readonly<Record<string, string>> = {
  home: '',
  jobs: 'jobs',
  'jobs-columns': 'jobs?columns=status,id,blueprint,version,state,owner,updated,took&order=oldest',
  approvals: 'approvals',
  quarantine: 'quarantine',
  workers: 'workers',
  worker: 'workers/gpu-fast',
  blueprints: 'blueprints',
  blueprint: 'blueprints/publish_video',
  start: 'blueprints/publish_video?start=1',
  queues: 'queues',
  schedules: 'schedules',
  automations: 'automations',
  'automation-new': 'automations/new',
  calendar: 'automations/calendar',
  runs: 'runs',
  documents: 'documents?q=harbour',
  events: 'events',
  webhooks: 'webhooks',
  agents: 'agents',
  clients: 'agents?tab=clients',
  settings: 'settings',
}
