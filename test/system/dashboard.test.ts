import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Browser, BrowserContext, ConsoleMessage, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newContext, openBrowser, PAGES, signIn, THEMES, WIDTHS } from '../browser/browser.ts'
import type { Width } from '../browser/browser.ts'
import { HOSTILE, openStage } from '../browser/stage.ts'
import type { BrowserStage } from '../browser/stage.ts'
import { ensure } from './debian-packages.ts'

const missing = ensure(['chromium'])

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly help: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}

describe.skipIf(missing !== undefined)('the dashboard in a browser', () => {
  let stage: BrowserStage
  let browser: Browser
  let axe = ''
  beforeAll(async () => {
    const path = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
    ;[stage, browser, axe] = await Promise.all([openStage(), openBrowser(), readFile(path, 'utf8')])
  })
  afterAll(async () => {
    await browser?.close()
    await stage?.close()
  })

  /** A signed-in page, and all that went wrong on it. */
  async function opened(
    look: Parameters<typeof newContext>[1] = {},
    who: Parameters<typeof signIn>[2] = 'admin',
  ): Promise<{ readonly page: Page; readonly context: BrowserContext; readonly trouble: readonly string[] }> {
    const context = await newContext(browser, look)
    const page = await context.newPage()
    const trouble: string[] = []
    page.on('pageerror', (error) => trouble.push(error.message))
    page.on('console', (message) => {
      if (/content security policy/i.test(message.text())) trouble.push(message.text())
    })
    page.on('request', (request) => {
      if (!request.url().startsWith(stage.address) && !request.url().startsWith('data:')) trouble.push(request.url())
    })
    await signIn(page, stage.address, who)
    return { page, context, trouble }
  }

  const allPages = (): readonly string[] => [
    ...Object.values(PAGES),
    `jobs/${stage.finishedJob}`,
    `jobs/${stage.askingJob}`,
    `jobs/${stage.askingJob}?tab=log`,
    `jobs/${stage.askingJob}?tab=files`,
    `jobs/${stage.finishedJob}?tab=tasks`,
    `jobs/${stage.finishedJob}?tab=data`,
    `jobs/${stage.stuckJob}`,
    `jobs/${stage.waitingJob}?tab=tasks`,
    `jobs/${stage.hostileJob}?tab=data`,
  ]

  const rulesBroken = async (page: Page, options: string): Promise<readonly string[]> => {
    const { violations } = await page.evaluate<AxeResult>(`axe.run(${options})`)
    return violations.map(({ id, nodes: [node] }) => `${id}: ${node?.html ?? ''} ${node?.failureSummary ?? ''}`)
  }

  test.for(Object.keys(WIDTHS) as Width[])(
    '[M-02] no page breaks a rule of accessibility, in both themes: %s',
    async (width) => {
      const { page, context, trouble } = await opened({ width })
      const found: string[] = []
      for (const path of allPages()) {
        await page.goto(`${stage.address}/dashboard/${path}`, { waitUntil: 'domcontentloaded' })
        await page.locator('main#content h1').waitFor()
        await page.locator('#content [role=status]').first().waitFor({ state: 'detached' })
        await page.evaluate(axe)
        const broken = [
          ...(await rulesBroken(page, '{ resultTypes: ["violations"] }')),
          // The other theme has other colours, and nothing else.
          ...(await page
            .evaluate('document.documentElement.dataset.theme = "dark"')
            .then(() => rulesBroken(page, '{ runOnly: ["color-contrast"], resultTypes: ["violations"] }'))),
        ]
        const wider = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
        const overflow = await page.evaluate<number>(wider)
        if (overflow > 0) broken.push(`${overflow} pixels too wide`)
        found.push(...broken.map((what) => `${path}: ${what}`))
      }
      expect(found).toEqual([])
      expect(trouble).toEqual([])
      await context.close()
    },
  )

  test.for(Object.keys(WIDTHS) as Width[])(
    '[M-02] [M-07] the pages outside of the dashboard break no rule either, in both themes: %s',
    async (width) => {
      const found: string[] = []
      for (const theme of THEMES) {
        const context = await newContext(browser, { width, theme, locale: 'es-ES' })
        const page = await context.newPage()
        const listen = (message: ConsoleMessage): void => {
          if (/content security policy/i.test(message.text())) found.push(message.text())
        }
        page.on('console', listen)
        const look = async (name: string, options: string): Promise<void> => {
          await page.evaluate(axe)
          const wider = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
          const overflow = await page.evaluate<number>(wider)
          if (overflow > 0) found.push(`${name}: ${overflow} pixels too wide`)
          found.push(...(await rulesBroken(page, options)).map((what) => `${name}, ${theme}: ${what}`))
        }
        await page.goto(stage.approvalPage)
        await page.getByRole('button', { name: 'Aprobar' }).waitFor()
        await look('approval', '{ resultTypes: ["violations"] }')
        // Its library tries a style inside the page, which is refused.
        page.off('console', listen)
        await page.goto(`${stage.address}/_public/docs`)
        await page.getByRole('button', { name: 'Entrar con un token' }).waitFor()
        await page.locator('.opblock-tag').first().click()
        await page.locator('.opblock-summary').first().click()
        await page.locator('.opblock-body').first().waitFor()
        // The structure of this page is that of its library.
        await look('documentation', '{ runOnly: ["color-contrast"], resultTypes: ["violations"] }')
        await context.close()
      }
      expect(found).toEqual([])
    },
  )

  test('[M-02] everything can be done by keyboard: find a job, open it, cancel it, answer a question', async () => {
    const { page, context } = await opened()
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('g')
    await page.keyboard.press('j')
    await page.waitForURL(/\/jobs$/)
    await page.locator('[data-row]').first().waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('remind_customer')
    await page.waitForURL(/q=remind_customer/)
    await page.getByRole('link', { name: /Sleeping/ }).waitFor()
    await page.keyboard.press('Tab')
    await page.evaluate('document.activeElement.blur()')
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/jobs\/[\w-]+$/)
    await page.getByRole('heading', { name: 'remind_customer' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('appro')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/approvals$/)
    await page.getByRole('region', { name: 'Question' }).first().waitFor()
    const before = await page.getByRole('region', { name: 'Question' }).count()
    expect(before).toBeGreaterThan(1)
    await page.keyboard.press('j')
    await page.keyboard.press('2')
    await page.getByText('Recorded: Reject.').waitFor()
    await expect.poll(() => page.getByRole('region', { name: 'Question' }).count()).toBe(before - 1)
    await context.close()
  })

  test('[M-02] by keyboard alone: start a job, cancel it, save a view, write an automation', async () => {
    const { page, context } = await opened()
    /** Tab by tab, as somebody without a mouse would. */
    const tabTo = async (name: RegExp): Promise<void> => {
      const focused =
        'document.activeElement.ariaLabel ?? document.activeElement.labels?.[0]?.textContent ?? document.activeElement.textContent'
      for (let tabs = 0; tabs < 120; tabs += 1) {
        await page.keyboard.press('Tab')
        if (name.test(await page.evaluate<string>(`(${focused}).trim()`))) return
      }
      throw new Error(`Nothing that reads ${String(name)} can be reached.`)
    }
    const go = async (key: string, heading: string): Promise<void> => {
      await page.keyboard.press('g')
      await page.keyboard.press(key)
      await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    }
    await go('b', 'Blueprints')
    await page.getByRole('link', { name: /remind_customer/ }).waitFor()
    await tabTo(/^remind_customer/)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'remind_customer' }).waitFor()
    await tabTo(/^Start a job$/)
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await tabTo(/^Start a job$/)
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/jobs\/[\w-]+$/)
    await page.getByText('Sleeping').first().waitFor()
    await tabTo(/^Cancel$/)
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await go('j', 'Jobs')
    await tabTo(/^Views$/)
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.type('Mine')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByRole('link', { name: 'Mine' }).waitFor()
    await page.keyboard.press('Escape')
    expect((await stage.admin.views.list()).map(({ name }) => name)).toContain('Mine')
    await go('t', 'Automations')
    await tabTo(/^New automation$/)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'New automation' }).waitFor()
    await tabTo(/^Title$/)
    await page.keyboard.type('By keyboard')
    await tabTo(/^message \*$/)
    await page.keyboard.type('Hello')
    await page.getByLabel('Title').press('Enter')
    await page.getByRole('heading', { name: 'By keyboard' }).waitFor()
    await context.close()
  })

  test('[M-02] [C-07] a job in quarantine is mended and goes on, alone and with all of its kind', async () => {
    const { page, context } = await opened()
    await page.goto(`${stage.address}/dashboard/jobs/${stage.stuckJob}`)
    await page.getByRole('button', { name: 'Edit and retry' }).click()
    const input = page.getByLabel('Input', { exact: true })
    await input.fill((await input.inputValue()).replace('{', '{ "mended": true, '))
    await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click()
    await page.getByText('Working').first().waitFor()
    await page.goto(`${stage.address}/dashboard/quarantine`)
    await page.getByRole('button', { name: 'Discard' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Discard 2 jobs' }).click()
    await page.getByText('Nothing is in quarantine').waitFor()
    expect(await page.getByRole('button', { name: 'Discard' }).count()).toBe(0)
    await context.close()
  })

  test('[M-02] [D-05] a job that waits says why, worker by worker', async () => {
    const { page, context } = await opened()
    await page.goto(`${stage.address}/dashboard/jobs/${stage.waitingJob}?tab=tasks`)
    await page.getByText("No live worker has the skill 'warehouse.pack'.").first().waitFor()
    await page.getByRole('cell', { name: 'gpu-fast' }).waitFor()
    expect(await page.getByRole('row').count()).toBeGreaterThanOrEqual(4)
    await context.close()
  })

  test('[M-02] the page of a job has its log, its files, every attempt and what each step changed', async () => {
    const { page, context } = await opened()
    await page.goto(`${stage.address}/dashboard/jobs/${stage.askingJob}?tab=log`)
    await page.getByRole('list', { name: 'Log' }).getByText('Checked the order.').waitFor()
    await page.getByLabel('From level').selectOption('warn')
    expect(await page.getByText('Checked the order.').count()).toBe(0)
    await page.getByRole('tab', { name: 'Files' }).click()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download in/invoice.pdf' }).click()
    expect((await download).suggestedFilename()).toContain('invoice.pdf')
    await page.goto(`${stage.address}/dashboard/jobs/${stage.finishedJob}?tab=tasks`)
    const attempts = page.getByRole('region', { name: 'Earlier attempts' })
    await attempts.getByText('attempt 1, done').first().waitFor()
    await page.getByRole('tab', { name: 'Data' }).click()
    await page.getByRole('region', { name: 'What each step changed' }).getByText('+').first().waitFor()
    await page
      .getByRole('button', { name: /transcode/ })
      .first()
      .waitFor()
    await context.close()
  })

  test('[M-02] a job is run again from one of its states, with other data, after a preview', async () => {
    const { page, context } = await opened()
    await page.goto(`${stage.address}/dashboard/jobs/${stage.askingJob}`)
    await page.getByRole('button', { name: 'Run again' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Begin in state').selectOption('approve')
    expect(await dialog.getByRole('note').textContent()).toContain('Not run again: check')
    await dialog.getByLabel('State history').fill('{ "checked_twice": true }')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await page.waitForURL((url) => !url.pathname.includes(stage.askingJob))
    await page.getByText('Needs a person').first().waitFor()
    await page.getByRole('tab', { name: 'Data' }).click()
    await page.getByText('checked_twice').first().waitFor()
    await context.close()
  })

  test('[M-02] a job is started from its blueprint, and what the server refuses is said', async () => {
    const { page, context } = await opened()
    await page.goto(`${stage.address}/dashboard/blueprints/publish_video?start=1`)
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('tab', { name: 'JSON' }).click()
    await dialog.getByRole('textbox', { name: 'Input' }).fill('{"title": 1}')
    await dialog.getByRole('button', { name: 'Start a job' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByRole('tab', { name: 'Form' }).click()
    await dialog.getByLabel('title *').fill('Third light')
    await dialog.getByRole('button', { name: 'Start a job' }).click()
    await page.waitForURL(/\/jobs\/[\w-]+$/)
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('publish_video')
    await context.close()
  })

  test('[M-02] [K-02] an automation is written in the form: problems stand at their fields, and its runs are shown before', async () => {
    const { page, context, trouble } = await opened()
    await page.goto(`${stage.address}/dashboard/automations/new`)
    await page.getByLabel('Title').fill('Evening report')
    await page.getByLabel('Time zone').fill('Europe/Berlin')
    await page.getByLabel('When').selectOption('weekly')
    await page.getByLabel('Time', { exact: true }).fill('18:30')
    const step = page.getByRole('group', { name: 'Step 1' })
    await step.getByLabel('message *').fill(`It is \${steps.nothing.at}`)
    await step.getByText('is not the output of an earlier step').waitFor()
    await step.getByLabel('message *').fill(`Sales of \${event.shop}`)
    const next = page.locator('section', { has: page.getByRole('heading', { name: 'Next runs' }) })
    await next.getByText(/18:30/).first().waitFor()
    await page.getByRole('button', { name: 'Add a step' }).click()
    await page.getByRole('group', { name: 'Step 2' }).getByLabel('Tool').selectOption('delay')
    await page.getByRole('button', { name: 'Remove step 2' }).click()
    await page.getByLabel('Event to suppose').fill('{ "shop": "Kazan" }')
    await page.getByRole('button', { name: 'Preview a run' }).click()
    await page.getByRole('list', { name: 'Preview of a run' }).getByText('Sales of Kazan').waitFor()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Evening report' }).waitFor()
    await page.getByRole('link', { name: 'Edit' }).click()
    await page.getByLabel('Title').fill('Night report')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Night report' }).waitFor()
    await page.goto(`${stage.address}/dashboard/automations/calendar`)
    await page.locator('table a[href*="/runs/"]').filter({ hasText: 'Weekly report' }).first().waitFor()
    await page.getByRole('button', { name: 'Later' }).click()
    await page
      .getByRole('table')
      .getByRole('link', { name: /Night report/ })
      .first()
      .waitFor()
    await page.reload()
    await page
      .getByRole('table')
      .getByRole('link', { name: /Night report/ })
      .first()
      .waitFor()
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] [M-07] the language follows the browser, and can be changed', async () => {
    const { page, context } = await opened({ locale: 'ru-RU' })
    await page.getByRole('heading', { name: 'Главная' }).waitFor()
    expect(await page.evaluate('document.documentElement.lang')).toBe('ru')
    await page.getByLabel('Язык').selectOption('es')
    await page.getByRole('heading', { name: 'Inicio' }).waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'Inicio' }).waitFor()
    await context.close()
  })

  test('[M-02] the address keeps everything: filters, tabs and chosen states survive reload and going back', async () => {
    const { page, context } = await opened()
    await page.goto(`${stage.address}/dashboard/jobs?show=finished&blueprint=publish_video`)
    await page.getByRole('button', { name: 'Finished', pressed: true }).waitFor()
    const rows = page.locator('[data-row]')
    await expect.poll(() => rows.count()).toBe(3)
    await rows.first().click()
    await page.getByRole('tab', { name: /Events/ }).click()
    await page.waitForURL(/tab=events/)
    await page.reload()
    await page.getByRole('tab', { name: /Events/, selected: true }).waitFor()
    await page.goBack()
    await page.waitForURL(/show=finished/)
    await expect.poll(() => rows.count()).toBe(3)
    await context.close()
  })

  test('[M-02] what jobs say is shown and never run, and does not break the page', async () => {
    const { page, context, trouble } = await opened()
    for (const path of [`jobs/${stage.hostileJob}?tab=data`, 'approvals', 'jobs', '']) {
      await page.goto(`${stage.address}/dashboard/${path}`)
      await page.getByText(HOSTILE.html.slice(0, 12)).first().waitFor()
      expect(await page.title()).toBe('Impresario')
      expect(await page.locator('img[src="x"]').count()).toBe(0)
    }
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] [H-01] a viewer sees, and finds no button that it may not press', async () => {
    const { page, context } = await opened({}, 'viewer')
    await page.goto(`${stage.address}/dashboard/blueprints/publish_video`)
    await page.getByRole('heading', { name: 'publish_video' }).waitFor()
    expect(await page.getByRole('button', { name: 'Start a job' }).count()).toBe(0)
    await page.goto(`${stage.address}/dashboard/jobs/${stage.askingJob}`)
    await page.getByText('There is no such job').waitFor()
    await context.close()
  })

  test('[M-02] changes appear by themselves, in all tabs over one stream; without it the page says that it asks', async () => {
    const { page, context } = await opened()
    const streams: string[] = []
    context.on('request', (request) => {
      if (request.url().endsWith('/changes')) streams.push(request.url())
    })
    const other = await context.newPage()
    for (const tab of [page, other]) await tab.goto(`${stage.address}/dashboard/jobs?show=cancelled`)
    for (const tab of [page, other]) {
      await tab.locator('aside').getByText('Live: changes appear at once').waitFor({ state: 'attached' })
      await tab.locator('[data-row]').first().waitFor()
    }
    const rows = await page.locator('[data-row]').count()
    const job = await stage.admin.start('remind_customer', {})
    await stage.admin.cancel(job.id)
    for (const tab of [page, other]) {
      await tab.bringToFront()
      await tab.getByRole('button', { name: '1 new' }).click()
      expect(await tab.locator('[data-row]').count()).toBe(rows + 1)
    }
    expect(streams).toHaveLength(1)
    await page.close()
    const second = await stage.admin.start('remind_customer', {})
    await stage.admin.cancel(second.id)
    await other.getByRole('button', { name: '1 new' }).waitFor()
    await context.route('**/changes', (route) => route.abort())
    await other.reload()
    await other.getByRole('note').filter({ hasText: 'No live connection' }).first().waitFor()
    const third = await stage.admin.start('remind_customer', {})
    await stage.admin.cancel(third.id)
    await other.getByRole('button', { name: '1 new' }).waitFor()
    await context.close()
  })

  test('[M-02] a link signs in once; signing out ends the session in every tab', async () => {
    const context = await newContext(browser)
    const page = await context.newPage()
    const link = stage.server.dashboardLink('admin', `jobs/${stage.finishedJob}`)
    await page.goto(link)
    await page.getByRole('heading', { name: 'publish_video' }).waitFor()
    expect(page.url()).not.toContain('code=')
    const other = await newContext(browser)
    const thief = await other.newPage()
    await thief.goto(link)
    await thief.locator('input[type=password]').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.locator('input[type=password]').waitFor()
    await page.goto(`${stage.address}/dashboard/jobs`)
    await page.locator('input[type=password]').waitFor()
    await Promise.all([context.close(), other.close()])
  })

  test('[M-02] [H-06] no other page may frame the dashboard', async () => {
    const context = await newContext(browser)
    const page = await context.newPage()
    await page.setContent(`<iframe src="${stage.address}/dashboard"></iframe>`)
    await expect.poll(() => page.frames()[1]?.url()).toMatch(/^chrome-error:/)
    await context.close()
  })
})
