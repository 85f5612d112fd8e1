import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createClient } from '@impresario/client'
import { blueprint } from '@impresario/core'
import { createLog, createServer } from '@impresario/server'
import { createWorker, PermanentError } from '@impresario/worker'
import type { Browser, BrowserContext, ConsoleMessage, Page, Request } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newContext, openBrowser, PAGES, signIn, THEMES, WIDTHS } from '../browser/browser.ts'
import type { Width } from '../browser/browser.ts'
import { HOSTILE, openStage, refund, TOKENS } from '../browser/stage.ts'
import type { BrowserStage } from '../browser/stage.ts'
import { ensure } from './debian-packages.ts'

const missing = ensure(['chromium'])
/** A machine with much to do needs this long for a server, its jobs and a browser. */
const START_MS = 180_000

/** By how many pixels the page, or what scrolls in it, is wider than the window. */
const WIDER = `Math.max(...[document.documentElement, document.querySelector('main#content')]
  .filter((part) => part !== null)
  .map((part) => part.scrollWidth - part.clientWidth))`

/** Its work always fails, which costs its worker some reputation. */
const clumsy = blueprint('clumsy', { start: 'carry' }, (state) => ({
  carry: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'clumsy.carry', transitions: { success: 'carried', failure: 'fallen' } }),
  ),
  carried: state.end(),
  fallen: state.end(),
}))

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly help: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}

interface Keyboard {
  /** Tab by tab, as somebody without a mouse would. */
  readonly tabTo: (name: RegExp) => Promise<void>
  /** Tabs to a button or a link, and presses it. */
  readonly press: (name: RegExp) => Promise<void>
  /** Tabs to a field, and writes into it instead of what is there. */
  readonly write: (name: RegExp, text: string) => Promise<void>
  readonly go: (key: string, heading: string) => Promise<void>
}

/** Somebody at the keyboard. The mouse is never used. */
function handsOn(page: Page): Keyboard {
  const tabTo = async (name: RegExp): Promise<void> => {
    const focused =
      // While a dialog closes, nothing may have the focus for a moment.
      'document.activeElement?.ariaLabel ?? document.activeElement?.labels?.[0]?.textContent ?? document.activeElement?.textContent ?? ""'
    // What is loaded late is reached in a later round.
    for (const until = Date.now() + 30_000; Date.now() < until;) {
      await page.keyboard.press('Tab')
      if (name.test(await page.evaluate<string>(`(${focused}).trim()`))) return
    }
    throw new Error(`Nothing that reads ${String(name)} can be reached.`)
  }
  return {
    tabTo,
    press: async (name) => {
      await tabTo(name)
      await page.keyboard.press('Enter')
    },
    write: async (name, text) => {
      await tabTo(name)
      await page.keyboard.press('Control+a')
      await page.keyboard.type(text)
    },
    go: async (key, heading) => {
      await page.keyboard.press('g')
      await page.keyboard.press(key)
      await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    },
  }
}

describe.skipIf(missing !== undefined)('the dashboard in a browser', () => {
  let stage: BrowserStage
  let browser: Browser
  let axe = ''
  beforeAll(async () => {
    const path = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
    ;[stage, browser, axe] = await Promise.all([openStage({}, [clumsy]), openBrowser(), readFile(path, 'utf8')])
  }, START_MS)
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
    `agents/${stage.agent}`,
    `automations/${stage.automation}`,
    `automations/${stage.automation}/edit`,
    `runs/${stage.run}`,
    `events?entry=${stage.event}`,
    'events?tab=audit',
    `events?tab=audit&entry=${stage.auditEntry}`,
    'schedules?entry=tidy',
    'schedules?entry=report',
    'events?tab=published',
    `events?tab=published&entry=${stage.published}`,
    `webhooks?entry=${stage.delivery}`,
    'webhooks?tab=endpoints',
    `webhooks?tab=endpoints&entry=${stage.endpoint}`,
    `webhooks?tab=endpoints&entry=${stage.disabledEndpoint}`,
    `jobs/${stage.run}`,
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
        const overflow = await page.evaluate<number>(WIDER)
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
          const overflow = await page.evaluate<number>(WIDER)
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
    const { tabTo, go } = handsOn(page)
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

  test('[M-02] by keyboard alone: sign in, start a job from a form, cancel it, run it again with other data', async () => {
    const context = await newContext(browser)
    const page = await context.newPage()
    const { tabTo, press, write, go } = handsOn(page)
    await page.goto(`${stage.address}/dashboard/blueprints/fulfil_order`)
    await page.locator('input[type=password]:focus').waitFor()
    await page.keyboard.type(TOKENS.alpha)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'fulfil_order' }).waitFor()
    await press(/^Start a job$/)
    await page.getByLabel('order *').and(page.locator(':focus')).waitFor()
    await page.keyboard.type('K-1')
    await write(/^amount/, '5000')
    await press(/^Start a job$/)
    await page.waitForURL(/\/jobs\/[\w-]+$/)
    await page.getByText('Needs a person').first().waitFor()
    // The same, with other data, from the beginning: small orders need no approval.
    await press(/^Run again$/)
    await page.getByRole('dialog').waitFor()
    await write(/^Input$/, '{"order":"K-2","amount":5}')
    await press(/^Start$/)
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByText('Working').first().waitFor()
    await page.keyboard.press('c')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.type('Not needed.')
    await page.keyboard.press('Enter')
    await page.getByText('The job is cancelled.').waitFor()
    // Filters by the keys of their kind: buttons, lists of choices, text.
    await go('j', 'Jobs')
    await press(/^Cancelled$/)
    await page.waitForURL(/show=cancelled/)
    await tabTo(/^Blueprint$/)
    await page.keyboard.type('fulfil')
    await page.waitForURL(/blueprint=fulfil_order/)
    await page.getByRole('link', { name: /Cancelled/ }).waitFor()
    await press(/^Needs you$/)
    await page.getByRole('link', { name: /Needs a person/ }).waitFor()
    await page.evaluate('document.activeElement.blur()')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: 'Question' }).waitFor()
    await page.keyboard.press('1')
    await page.getByText('Recorded: Approve.').waitFor()
    const mine = await stage.admin.list({ owner: 'alpha', blueprint: 'fulfil_order' }).all()
    expect(mine.map(({ status }) => status)).toEqual(['cancelled', 'waiting_for_worker'])
    await context.close()
  })

  test('[M-02] [K-01] by keyboard alone: create an agent, give it a token, rotate and revoke it', async () => {
    const { page, context } = await opened()
    const { tabTo, press, go } = handsOn(page)
    await go('c', 'Agents and clients')
    await press(/^New agent$/)
    await page.getByLabel('Name').and(page.locator(':focus')).waitFor()
    await page.keyboard.type('night-shift')
    await tabTo(/^jobs:read$/)
    await page.keyboard.press('Space')
    await press(/^Save$/)
    await page.getByRole('heading', { level: 1, name: 'night-shift' }).waitFor()
    await press(/^New token$/)
    await page.getByRole('dialog').waitFor()
    await page.keyboard.type('server-7')
    await page.keyboard.press('Enter')
    const secret = page.getByLabel('The new token')
    await secret.waitFor()
    const token = await secret.inputValue()
    const asAgent = (): Promise<Response> =>
      fetch(`${stage.address}/api/v1/jobs`, { headers: { 'x-client-token': token } })
    expect((await asAgent()).status).toBe(200)
    await page.keyboard.press('Escape')
    await press(/^Rotate server-7$/)
    await page.getByRole('dialog').waitFor()
    expect(await page.getByLabel('What it is for').inputValue()).toBe('server-7 2')
    await page.keyboard.press('Enter')
    await secret.waitFor()
    // Both work until the old one is revoked.
    expect((await asAgent()).status).toBe(200)
    await press(/^Revoke server-7$/)
    await page.getByText('The token is revoked.').waitFor()
    expect((await asAgent()).status).toBe(401)
    await page.getByText('server-7 2').waitFor()
    const made = (await stage.admin.agents.list({ search: 'night-shift' }).all())[0]
    expect(made).toMatchObject({ scopes: ['jobs:read'], tokens: [{ name: 'server-7 2' }] })
    await press(/^Delete$/)
    await page.getByRole('dialog').waitFor()
    await press(/^Delete$/)
    await page.getByRole('heading', { level: 1, name: 'Agents and clients' }).waitFor()
    await page.getByRole('link', { name: /reporter/ }).waitFor()
    // The list as it was before may be there for a moment.
    await page.getByText('night-shift').first().waitFor({ state: 'detached' })
    expect(await page.getByText('night-shift').count()).toBe(0)
    await page.getByRole('tab', { name: 'Clients' }).click()
    await page.getByRole('link', { name: 'alpha' }).waitFor()
    await context.close()
  })

  test('[M-02] by keyboard alone: name a webhook endpoint, rotate its secret, enable one that was disabled', async () => {
    const { page, context, trouble } = await opened()
    const { tabTo, press, go } = handsOn(page)
    await go('o', 'Webhooks')
    await tabTo(/^Deliveries$/)
    await page.keyboard.press('ArrowRight')
    await page.waitForURL(/tab=endpoints/)
    await press(/^New endpoint$/)
    await page.getByLabel('Address').and(page.locator(':focus')).waitFor()
    await page.keyboard.type('http://127.0.0.1:2001/later?x=1')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'http://127.0.0.1:2001/later' }).waitFor()
    await press(/^Show the secret$/)
    const shown = page.getByLabel('The secret').getByRole('textbox')
    const before = await shown.inputValue()
    expect(before).toMatch(/^whsec_/)
    await press(/^Close$/)
    await press(/^Rotate the secret$/)
    await tabTo(/^The old secret ends$/)
    await page.keyboard.type('At once')
    await press(/^Rotate the secret$/)
    const made = page.getByLabel('The new secret').getByRole('textbox')
    const secret = await made.inputValue()
    const id = new URL(page.url()).searchParams.get('entry') ?? ''
    expect(await stage.admin.webhooks.secret(id)).toMatchObject({ secret, oldSecretUntil: null })
    expect(secret).not.toBe(before)
    await page.keyboard.press('Escape')
    await page.locator('[data-entry]:focus').waitFor()
    // Once closed, it is nowhere on the page.
    expect(await page.content()).not.toContain(secret)
    await page.goto(`${stage.address}/dashboard/webhooks?tab=endpoints&entry=${stage.disabledEndpoint}`)
    const dialog = page.getByRole('dialog')
    await dialog.getByText('It answered 410 Gone').waitFor()
    await press(/^Enable again$/)
    await dialog.getByText('New messages, and those that wait').waitFor()
    await press(/^Enable again$/)
    await page.getByText('It is enabled; 0 messages are sent now.').waitFor()
    await dialog.getByText('Messages are sent to it at once.').waitFor()
    expect((await stage.admin.webhooks.endpoint(stage.disabledEndpoint)).status).toBe('active')
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] a published event and a webhook message are opened by keyboard, with what became of them', async () => {
    const { page, context, trouble } = await opened({ width: 'phone' })
    const dialog = page.getByRole('dialog')
    await page.goto(`${stage.address}/dashboard/events?tab=published`)
    await page.getByText('order.paid').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await dialog.getByText('No automation listens to it.').waitFor()
    expect(new URL(page.url()).searchParams.get('entry')).toBe(stage.published)
    await page.keyboard.press('Escape')
    await page.locator(`[data-entry="${stage.published}"]:focus`).waitFor()
    await page.goto(`${stage.address}/dashboard/webhooks`)
    const row = page.locator(`[data-entry="${stage.delivery}"]`)
    await row.focus()
    await page.keyboard.press('Enter')
    await dialog.getByText('Attempts', { exact: true }).waitFor()
    await dialog.getByText('"delivered"').waitFor()
    await page.reload()
    await dialog.getByText('"delivered"').waitFor()
    await dialog.getByRole('link').first().click()
    await page.getByRole('heading', { level: 1, name: 'remind_customer' }).waitFor()
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] [F-04] a schedule is opened by keyboard and says its next ten firings; only admins run it', async () => {
    const { page, context, trouble } = await opened()
    const { go } = handsOn(page)
    await go('s', 'Schedules')
    await page.getByText('Monday and Friday at 07:05').waitFor()
    await page.getByRole('button', { name: 'Run now' }).first().waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'tidy' })
    const firings = (name: string): Promise<number> => dialog.getByLabel(name).getByRole('listitem').count()
    await expect.poll(() => firings('Next firings')).toBe(10)
    // It fired when the server started.
    await expect.poll(() => firings('Last firings')).toBe(1)
    await dialog.getByLabel('Last firings').getByRole('link').press('Enter')
    await page.getByRole('heading', { level: 1, name: 'tidy_up' }).waitFor()
    await page.goto(`${stage.address}/dashboard/schedules?entry=off`)
    await page.getByText('It is switched off in the file of schedules').waitFor()
    expect(trouble).toEqual([])
    await context.close()
    const other = await opened({ width: 'phone' }, 'alpha')
    await other.page.goto(`${stage.address}/dashboard/schedules`)
    await other.page.getByText('Monday and Friday at 07:05').waitFor()
    expect(await other.page.getByRole('button', { name: /Run now|Pause/ }).count()).toBe(0)
    await other.context.close()
  })

  test.each(['desktop', 'phone'] as const)(
    '[M-02] [F-04] by keyboard alone: a schedule is paused and resumed, and says so: %s',
    async (width) => {
      const { page, context, trouble } = await opened({ width })
      const { tabTo, go } = handsOn(page)
      await go('s', 'Schedules')
      const row = page.getByRole('listitem').filter({ hasText: 'report' })
      await row.getByText('Active').waitFor()
      // What is off is off in its file: it has no such button.
      expect(await page.getByRole('button', { name: 'Pause' }).count()).toBe(2)
      await tabTo(/^report$/)
      await tabTo(/^Pause$/)
      await page.keyboard.press('Enter')
      await page.getByText('Paused. Nothing starts until it is resumed.').waitFor()
      await row.getByText('Paused', { exact: true }).waitFor()
      expect(await stage.admin.schedules.get('report')).toMatchObject({ pausedBy: 'admin', nextAt: null })
      await page.goto(`${stage.address}/dashboard/schedules?entry=report`)
      await page.getByText('It is paused, so that nothing starts until it is resumed.').waitFor()
      await page.evaluate(axe)
      expect(await rulesBroken(page, '{ resultTypes: ["violations"] }')).toEqual([])
      expect(await page.evaluate(WIDER)).toBe(0)
      await page.keyboard.press('Escape')
      await row.getByRole('button', { name: 'Resume' }).press('Enter')
      await row.getByText('Active').waitFor()
      expect(await stage.admin.schedules.get('report')).toMatchObject({ pausedAt: null })
      expect(trouble).toEqual([])
      await context.close()
    },
  )

  test('[M-02] a viewer has no button that changes webhook endpoints, and sees none of others', async () => {
    const { page, context } = await opened({}, 'viewer')
    await page.goto(`${stage.address}/dashboard/webhooks?tab=endpoints&entry=${stage.endpoint}`)
    await page.getByRole('dialog').getByText('There is no such entry').waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('No endpoints').waitFor()
    expect(await page.getByRole('button', { name: /endpoint|secret|Enable/i }).count()).toBe(0)
    await context.close()
  })

  test('[M-02] columns and order of the job list are kept in the address', async () => {
    const { page, context } = await opened()
    const { press, tabTo } = handsOn(page)
    await page.goto(`${stage.address}/dashboard/jobs?blueprint=publish_video`)
    const rows = page.locator('[data-row]')
    await rows.first().waitFor()
    const ids = (): Promise<readonly unknown[]> =>
      page.evaluate("[...document.querySelectorAll('[data-row]')].map((row) => row.dataset.row)")
    const newest = await ids()
    expect(newest.length).toBeGreaterThan(2)
    await press(/^Columns$/)
    await tabTo(/^Client$/)
    await page.keyboard.press('Space')
    await page.waitForURL(/columns=[\w%,]*owner/)
    await page.keyboard.press('Escape')
    await rows.first().getByText('admin', { exact: true }).waitFor()
    await page.getByLabel('Order').selectOption('oldest')
    await page.waitForURL(/order=oldest/)
    await expect.poll(ids).toEqual(newest.toReversed())
    await page.reload()
    await expect.poll(ids).toEqual(newest.toReversed())
    await rows.first().getByText('admin', { exact: true }).waitFor()
    await context.close()
  })

  test('[M-02] a run of an automation has its title among the jobs, leads to its steps, and is run again from one of them', async () => {
    const { page, context, trouble } = await opened()
    await page.goto(`${stage.address}/dashboard/jobs`)
    await page.locator(`[data-row="${stage.run}"]`).getByText('Weekly report').click()
    await page.getByRole('heading', { level: 1, name: 'Weekly report' }).waitFor()
    await page.getByText('This job is a run of an automation').waitFor()
    await page.getByRole('link', { name: 'Steps of the run' }).first().click()
    await page.getByRole('button', { name: /^say/ }).click()
    await page.getByRole('button', { name: 'Run again from here' }).click()
    await page.waitForURL((url) => url.pathname.includes('/runs/') && !url.pathname.endsWith(stage.run))
    await page.getByText('again ·').waitFor()
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] an entry of the events and of the audit log opens whole, by mouse, by keyboard and by its address', async () => {
    const { page, context, trouble } = await opened()
    const dialog = page.getByRole('dialog')
    // By its address, also where the list does not have it yet.
    await page.goto(`${stage.address}/dashboard/events?entry=${stage.event}`)
    await dialog.getByRole('heading', { name: 'task finished' }).waitFor()
    await dialog.getByText('attempt_number').waitFor()
    expect(await page.evaluate("[...document.querySelectorAll('dialog a')].map(({ pathname }) => pathname)")).toEqual([
      expect.stringContaining('/dashboard/jobs/'),
      expect.stringContaining('/dashboard/blueprints/'),
      expect.stringContaining('/dashboard/workers/'),
    ])
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    expect(new URL(page.url()).search).toBe('')
    // By the mouse, anywhere on the row, and back.
    await page.getByRole('tab', { name: 'Audit' }).click()
    const row = page.getByRole('listitem').filter({ hasText: 'run started' }).first()
    await row.click({ position: { x: 300, y: 10 } })
    await dialog.getByRole('heading', { name: 'run started' }).waitFor()
    await page.goBack()
    await dialog.waitFor({ state: 'detached' })
    // By keyboard, from the row that was open; the focus is then where it was.
    await page.keyboard.press('k')
    const first = await page.evaluate<string>('document.activeElement.dataset.entry')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    await page.keyboard.press('Enter')
    await page.waitForURL(new RegExp(`entry=${first}`))
    await dialog.getByText('The whole entry').waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await expect.poll(() => page.evaluate('document.activeElement.dataset.entry')).toBe(first)
    // It leads to what it is about.
    await page.goto(`${stage.address}/dashboard/events?tab=audit&entry=${stage.auditEntry}`)
    await dialog.getByRole('link', { name: 'Weekly report' }).waitFor()
    await dialog.getByRole('link', { name: stage.run.slice(-12) }).click()
    await page.waitForURL((url) => url.pathname.endsWith(`/runs/${stage.run}`))
    await dialog.waitFor({ state: 'detached' })
    await page.goto(`${stage.address}/dashboard/events?tab=audit&entry=none`)
    await dialog.getByText('There is no such entry').waitFor()
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] what is shown stays while the server is away, and a page that is not loaded yet comes when it is back', async () => {
    const { page, context } = await opened()
    // Without the stream it asks every two seconds, and so finds out soon.
    await context.route(/\/changes/, (route) => route.abort())
    await page.goto(`${stage.address}/dashboard/jobs`)
    const row = page.locator(`[data-row="${stage.hostileJob}"]`)
    await row.waitFor()
    await context.route('**/*', (route) => route.abort())
    await page.getByRole('note').filter({ hasText: 'The server cannot be reached.' }).first().waitFor()
    await page.getByRole('link', { name: 'Webhooks' }).click()
    expect(await row.isVisible()).toBe(true)
    await context.unrouteAll({ behavior: 'ignoreErrors' })
    await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
    await page.getByRole('note').first().waitFor({ state: 'detached' })
    await context.close()
  })

  test('[M-02] who is signed out by the server is told so, and comes back to the same page', async () => {
    const { page, context } = await opened()
    // Without the stream it asks every two seconds, and so finds out soon.
    await context.route(/\/changes/, (route) => route.abort())
    await page.goto(`${stage.address}/dashboard/queues`)
    await page.getByRole('heading', { level: 1, name: 'Queues' }).waitFor()
    await context.clearCookies()
    await page.getByText('Your session has ended.').waitFor()
    await page.locator('input[type=password]').fill(TOKENS.admin)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Queues' }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/dashboard/queues')
    await context.close()
  })

  test('[M-02] [D-05] a worker says why it gets nothing, queues what waits longest, settings what the server promises', async () => {
    const { page, context } = await opened()
    await page.goto(`${stage.address}/dashboard/workers/gpu-fast`)
    await page.getByText('No task that waits needs one of its skills.').waitFor()
    await page.getByText("It lacks the skill 'warehouse.pack'.").first().waitFor()
    await page.goto(`${stage.address}/dashboard/queues`)
    await page.getByRole('link', { name: /fulfil_order/ }).click()
    await page.getByRole('heading', { name: 'fulfil_order' }).waitFor()
    await page.goto(`${stage.address}/dashboard/settings`)
    await page.getByText('this one', { exact: true }).waitFor()
    await page.getByText('Everything is gone when the process ends.').waitFor()
    await page.getByText(process.versions['tz'] ?? '').waitFor()
    await page.getByText('Forgets workers that are gone', { exact: true }).waitFor()
    await page.getByText('Ended jobs are kept').waitFor()
    expect(await page.locator('#content').getByText('body_bytes').count()).toBe(0)
    await context.close()
  })

  test('[M-02] [H-01] only admins see agents, clients and what the server is', async () => {
    for (const who of ['alpha', 'viewer'] as const) {
      const { page, context } = await opened({}, who)
      const refused: string[] = []
      page.on('response', (response) => {
        if (response.status() === 403) refused.push(response.url())
      })
      await page.goto(`${stage.address}/dashboard/agents`)
      await page.getByText('Only admins see agents and clients').waitFor()
      await page.goto(`${stage.address}/dashboard/settings`)
      await page.getByText('Size of a request').waitFor()
      expect(await page.getByRole('heading', { name: 'This server' }).count()).toBe(0)
      expect(refused).toEqual([])
      await context.close()
    }
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

  test('[M-02] [C-07] by keyboard alone: retry a job and a group in quarantine, search documents, change language and theme', async () => {
    const { page, context } = await opened()
    const { tabTo, press, go } = handsOn(page)
    const broken: string[] = []
    for (const order of ['Q-1', 'Q-2', 'Q-3']) {
      const job = await stage.admin.start('fulfil_order', { order, amount: 20, country: 'US' })
      for await (const { status } of job.watch()) if (status === 'quarantined') break
      broken.push(job.id)
    }
    await page.keyboard.press('Control+k')
    await page.keyboard.type(broken[0] ?? '')
    // Before the last letters are typed, the beginning of the id may find the others too.
    await expect.poll(() => page.getByRole('option', { name: /fulfil_order/ }).count()).toBe(1)
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/jobs\/[\w-]+$/)
    await page.getByRole('button', { name: 'Retry', exact: true }).waitFor()
    await page.keyboard.press('r')
    await page.getByText('The job goes on.').waitFor()
    await go('q', 'Quarantine')
    await press(/^Retry all$/)
    await page.getByRole('dialog').waitFor()
    await press(/^Retry \d+ jobs$/)
    await page.getByText(/\d+ done, 0 failed/).waitFor()
    await go('d', 'Documents')
    await page.getByPlaceholder(/Words/).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('harbour')
    await page.getByText('harbour-report.txt').first().waitFor()
    await page.evaluate('document.activeElement.blur()')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('light and dark')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
    await tabTo(/^Language$/)
    await page.keyboard.type('Esp')
    await page.getByRole('heading', { name: 'Documentos' }).waitFor()
    await context.close()
  })

  test('[M-02] [B-04] by keyboard alone, on a phone: a question is answered with a reply that the job reads', async () => {
    const { page, context, trouble } = await opened({ width: 'phone' })
    const { go } = handsOn(page)
    const { id } = await stage.admin.start(refund, {})
    await page.goto(`${stage.address}/dashboard/jobs/${id}`)
    await page.getByRole('region', { name: /refund/ }).waitFor()
    await page.keyboard.press('r')
    await page.getByLabel('Reply to the job').and(page.locator(':focus')).waitFor()
    await page.keyboard.type('Too late, ask in 2027.')
    await page.getByText('The job gets it with your decision.').waitFor()
    expect(await page.evaluate(WIDER)).toBe(0)
    // What is typed decides nothing; outside of the field the keys do.
    expect((await stage.admin.job(id).status()).status).toBe('waiting_for_human')
    await page.keyboard.press('Escape')
    // The second key of a pair is no command of its own: this one would cancel.
    await go('c', 'Agents and clients')
    await page.goBack()
    await page.getByRole('region', { name: /refund/ }).waitFor()
    await page.keyboard.press('r')
    await page.keyboard.type('Too late, ask in 2027.')
    await page.keyboard.press('Escape')
    await page.keyboard.press('2')
    const { stateHistory } = await stage.admin.job(id).wait()
    expect(stateHistory).toMatchObject({ decision: { decision: 'rejected', comment: 'Too late, ask in 2027.' } })
    expect(trouble).toEqual([])
    await context.close()
  })

  test.each(['phone', 'desktop'] as const)(
    '[M-02] [B-04] a question is ignored and taken back by keyboard; the job waits on, and others still see it: %s',
    async (width) => {
      const { page, context, trouble } = await opened({ width })
      const { id } = await stage.admin.start(refund, {})
      await expect.poll(async () => (await stage.admin.job(id).status()).status).toBe('waiting_for_human')
      await page.goto(`${stage.address}/dashboard/approvals`)
      const mine = page.getByRole('region', { name: new RegExp(`refund.*${id.slice(-12)}`) })
      await mine.waitFor()
      // The newest one is the first.
      await page.keyboard.press('i')
      await page.getByText('Out of your inbox. The job waits on.').waitFor()
      await expect.poll(() => mine.count()).toBe(0)
      await page.reload()
      await page.getByRole('region', { name: 'Question' }).first().waitFor()
      expect(await mine.count()).toBe(0)
      expect((await stage.admin.job(id).status()).status).toBe('waiting_for_human')
      const other = await opened({ width })
      await other.page.goto(`${stage.address}/dashboard/approvals`)
      await other.page.getByRole('region', { name: new RegExp(`refund.*${id.slice(-12)}`) }).waitFor()
      await other.context.close()
      await page.getByRole('button', { name: 'Ignored' }).press('Enter')
      await page.waitForURL(/show=ignored/)
      await mine.waitFor()
      await page.evaluate(axe)
      expect(await rulesBroken(page, '{ resultTypes: ["violations"] }')).toEqual([])
      expect(await page.evaluate(WIDER)).toBe(0)
      await page.keyboard.press('i')
      await page.getByText('You ignore nothing').waitFor()
      await page.goBack()
      await mine.waitFor()
      await page.keyboard.press('2')
      await stage.admin.job(id).wait()
      expect(trouble).toEqual([])
      await context.close()
    },
  )

  test('[M-02] [B-04] a question with a form is answered in the dashboard and on the page for people; what is wrong stands at its field', async () => {
    const { page, context, trouble } = await opened()
    const violations = async (): Promise<readonly string[]> => {
      await page.evaluate(axe)
      return rulesBroken(page, '{ resultTypes: ["violations"] }')
    }
    const { id } = await stage.admin.start(refund, {})
    await page.goto(`${stage.address}/dashboard/jobs/${id}`)
    const card = page.getByRole('region', { name: /refund/ })
    await card.getByRole('button', { name: 'Approve' }).click()
    // The browser says what is missing: nothing was sent.
    await expect.poll(() => card.locator('input:invalid').count()).toBe(1)
    await card.getByLabel('Amount *').fill('120')
    await card.getByLabel('Way *').selectOption('voucher')
    await card.getByLabel('Account').fill('nonsense')
    await card.getByLabel('late').check()
    expect(await violations()).toEqual([])
    await card.getByRole('button', { name: 'Approve' }).click()
    await card.getByText('must have the form').waitFor()
    await card.getByLabel('Account').fill('ES1234')
    await card.getByRole('button', { name: 'Approve' }).click()
    const { stateHistory } = await stage.admin.job(id).wait()
    const data = { amount: 120, way: 'voucher', account: 'ES1234', reasons: ['late'] }
    expect(stateHistory).toMatchObject({ decision: { data } })
    const other = await stage.admin.start(refund, {})
    await expect.poll(async () => (await other.status()).status).toBe('waiting_for_human')
    await page.goto((await stage.admin.approvals.get(other.id)).url)
    expect(await violations()).toEqual([])
    await page.getByLabel('Amount *').fill('80')
    await page.getByLabel('Way *').selectOption('card')
    await page.getByLabel('Account').fill('nonsense')
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByLabel('Amount *').inputValue()).toBe('80')
    expect(await violations()).toEqual([])
    await page.getByLabel('Account').fill('')
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('Your decision is recorded').waitFor()
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] documents are filtered, their text is shown, and the index says how far it is', async () => {
    const { page, context, trouble } = await opened()
    await page.goto(`${stage.address}/dashboard/documents?q=harbour`)
    const hit = page.getByRole('button', { name: 'harbour-report.txt' })
    await hit.waitFor()
    await page.getByText('Files waiting').waitFor()
    await page.getByLabel('Type', { exact: true }).selectOption('md')
    await hit.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Invoice B-2001' }).click()
    await page.getByRole('dialog').getByText('to be paid within a month').waitFor()
    await page.reload()
    expect(await page.getByLabel('Type', { exact: true }).inputValue()).toBe('md')
    expect(trouble).toEqual([])
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

  test('[M-07] [D-05] why a job waits and why a worker gets nothing is said in the language of the page', async () => {
    const said = {
      'ru-RU': ['Ни у одного исполнителя на связи нет навыка «warehouse.pack».', 'У него нет навыка «warehouse.pack».'],
      'es-ES': [
        'Ningún ejecutor en línea tiene la habilidad «warehouse.pack».',
        'Le falta la habilidad «warehouse.pack».',
      ],
    } as const
    for (const [locale, [nobody, lacks]] of Object.entries(said)) {
      const { page, context } = await opened({ locale })
      await page.goto(`${stage.address}/dashboard/jobs/${stage.waitingJob}?tab=tasks`)
      await page.getByText(nobody).first().waitFor()
      await page.getByText(lacks).first().waitFor()
      await page.goto(`${stage.address}/dashboard/workers/gpu-fast`)
      await page.getByText(lacks).first().waitFor()
      expect(await page.getByText('It lacks').count()).toBe(0)
      await context.close()
    }
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
    // A question, and steps side by side of which one fails once: forms all the way, no JSON.
    await page.getByRole('button', { name: 'Add a step', exact: true }).click()
    const asking = page.getByRole('group', { name: 'Step 2', exact: true })
    await asking.getByLabel('What it does').selectOption('approval')
    await asking.getByLabel('Question').fill(`Send it to \${event.shop}?`)
    await asking.getByLabel('Answers').fill('Send')
    await asking.getByText('Must be different names of small letters').waitFor()
    await asking.getByLabel('Answers').fill('send, hold')
    await asking.getByText('Must be different names of small letters').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Add a step', exact: true }).click()
    await page.getByRole('group', { name: 'Step 3', exact: true }).getByLabel('What it does').selectOption('parallel')
    const branch = page.getByRole('group', { name: 'Step 3.2', exact: true })
    await branch.getByLabel('message *').fill('Done')
    await branch.getByText('Condition, timeout, retries, loop, errors').click()
    await branch.getByLabel('Attempts', { exact: true }).fill('3')
    await page.getByRole('group', { name: 'Step 3.1', exact: true }).getByLabel('message *').fill('Sent')
    await page.getByLabel('Event to suppose').fill('{ "shop": "Kazan" }')
    await page.getByRole('button', { name: 'Preview a run' }).click()
    await page.getByRole('list', { name: 'Preview of a run' }).getByText('Sales of Kazan').waitFor()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Evening report' }).waitFor()
    const made = (await stage.admin.automations.list().all()).find(
      ({ definition }) => definition['title'] === 'Evening report',
    )
    expect(made?.definition['pipeline']).toMatchObject([
      { uses: 'log' },
      { approval: { message: `Send it to \${event.shop}?`, decisions: ['send', 'hold'] } },
      { parallel: [{ with: { message: 'Sent' } }, { with: { message: 'Done' }, retry: 3 }] },
    ])
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

  test('[M-02] by keyboard alone: jobs are chosen, what will be hit is shown, and they are cancelled together', async () => {
    const alpha = createClient({ url: stage.address, token: TOKENS.alpha })
    const started = await Promise.all(Array.from({ length: 3 }, () => alpha.start('remind_customer', {})))
    const { page, context, trouble } = await opened({}, 'alpha')
    const { tabTo, press } = handsOn(page)
    await page.goto(`${stage.address}/dashboard/jobs?blueprint=remind_customer&show=open`)
    await expect.poll(() => page.locator('[data-row]').count()).toBe(3)
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.getByText('1 selected').waitFor()
    await tabTo(/^Select all that are shown$/)
    await page.keyboard.press('Space')
    await page.getByText('3 selected').waitFor()
    await page.keyboard.press('Space')
    await page.getByText('selected').waitFor({ state: 'detached' })
    await page.keyboard.press('Space')
    await press(/^Cancel 3 jobs$/)
    const dialog = page.getByRole('dialog')
    await expect.poll(() => dialog.getByRole('listitem').count()).toBe(3)
    // What is shown can be left alone.
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    expect((await started[0]?.status())?.status).toBe('waiting_for_time')
    await press(/^Cancel 3 jobs$/)
    await dialog.waitFor()
    await press(/^Cancel 3 jobs$/)
    await page.getByText('3 done, 0 failed.').waitFor()
    for (const job of started) expect((await job.status()).status).toBe('cancelled')
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] on a phone, too, jobs are chosen and cancelled together', async () => {
    const alpha = createClient({ url: stage.address, token: TOKENS.alpha })
    const started = await Promise.all(Array.from({ length: 2 }, () => alpha.start('remind_customer', {})))
    const { page, context, trouble } = await opened({ width: 'phone' }, 'alpha')
    await page.goto(`${stage.address}/dashboard/jobs?blueprint=remind_customer&show=open`)
    await expect.poll(() => page.locator('[data-row]').count()).toBe(2)
    await page.getByLabel('Select all that are shown').check()
    await page.getByRole('button', { name: 'Cancel 2 jobs' }).click()
    await page.evaluate(axe)
    expect(await rulesBroken(page, '{ resultTypes: ["violations"] }')).toEqual([])
    expect(await page.evaluate(WIDER)).toBe(0)
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel 2 jobs' }).click()
    await page.getByText('2 done, 0 failed.').waitFor()
    for (const job of started) expect((await job.status()).status).toBe('cancelled')
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] [K-02] by keyboard alone: an automation is run, paused, resumed, snoozed and changed; its run is begun again from a step', async () => {
    const { id } = await stage.admin.automations.create({
      title: 'Count the boxes',
      triggers: [{ cron: '0 6 * * *' }],
      pipeline: [{ id: 'count', uses: 'log', with: { message: 'There are seven.' } }],
    })
    const { page, context, trouble } = await opened()
    const { tabTo, press, go } = handsOn(page)
    await go('t', 'Automations')
    await press(/^Count the boxes/)
    await page.getByRole('heading', { level: 1, name: 'Count the boxes' }).waitFor()
    await page.getByText('one run makes good for all').waitFor()
    await press(/^Pause$/)
    await page.getByText('Paused', { exact: true }).waitFor()
    await press(/^Resume$/)
    await page.getByText('Active', { exact: true }).waitFor()
    await press(/^Snooze one hour$/)
    await page.getByText('Snoozed until').waitFor()
    await press(/^Edit$/)
    await page.getByRole('heading', { level: 1, name: 'Edit automation' }).waitFor()
    await tabTo(/^If times were missed$/)
    await page.keyboard.type('each')
    await tabTo(/^At most so many$/)
    await page.keyboard.press('Control+a')
    await page.keyboard.type('3')
    await press(/^Save$/)
    await page.getByRole('heading', { level: 1, name: 'Count the boxes' }).waitFor()
    await page.getByText('each is made good (at most so many: 3)').waitFor()
    expect((await stage.admin.automations.get(id)).definition).toMatchObject({ misfire: { catch_up: { max: 3 } } })
    await press(/^Run now$/)
    await press(/^Count the boxes\s*by hand/)
    await page.waitForURL(/\/runs\//)
    await page.getByRole('button', { name: /^count/ }).waitFor()
    const first = page.url()
    await press(/^count/)
    await page.getByText('There are seven.').first().waitFor()
    await press(/^Run again from here$/)
    await page.waitForURL((url) => url.href !== first)
    await page.getByText('again ·').waitFor()
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] by keyboard alone: a webhook message is sent again', async () => {
    const { page, context, trouble } = await opened()
    const { tabTo, go } = handsOn(page)
    const triesOf = async (): Promise<number> => (await stage.admin.webhooks.delivery(stage.delivery)).attempts.length
    const before = await triesOf()
    await go('o', 'Webhooks')
    const row = page.locator(`[data-entry="${stage.delivery}"]`)
    await row.waitFor()
    await page.keyboard.press('j')
    while ((await page.evaluate('document.activeElement.dataset.entry')) !== stage.delivery) {
      await page.keyboard.press('j')
    }
    await tabTo(/^Send again$/)
    await page.keyboard.press('Enter')
    await expect.poll(triesOf).toBe(before + 1)
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] a worker shows how its reputation went, an attempt what it cost, the calendar what schedules do', async () => {
    const { page, context, trouble } = await opened()
    const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
    const worker = createWorker({ id: 'clumsy', transport: stage.server.localTransport(), log: quiet })
    await worker
      .task('clumsy.carry', () => {
        throw new PermanentError('It fell.')
      })
      .start()
    await (await stage.admin.start('clumsy', {})).wait()
    await page.goto(`${stage.address}/dashboard/workers/clumsy`)
    await page.getByRole('img', { name: 'Reputation, from the oldest to the newest change: 100 % → 95 %' }).waitFor()
    await page.getByRole('listitem').filter({ hasText: 'reputation' }).getByText('95 %').waitFor()
    await worker.stop()
    await page.goto(`${stage.address}/dashboard/jobs/${stage.finishedJob}?tab=tasks`)
    await page
      .getByText(/^Cost about 0\.\d+$/)
      .first()
      .waitFor()
    await page.goto(`${stage.address}/dashboard/schedules`)
    await page.getByRole('link', { name: 'Calendar' }).click()
    const table = page.getByRole('table')
    // What was leads to its job, what comes to the schedule.
    await table.locator('a[href*="/jobs/"]').filter({ hasText: 'tidy' }).first().waitFor()
    await table.locator('a[href*="entry=report"]').first().click()
    await page.getByRole('dialog', { name: 'report' }).waitFor()
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] a server without a history says how to get one, and offers no filters of events', async () => {
    const settings = { storageUrl: 'memory:', apiHost: '127.0.0.1', apiPort: 0 }
    const log = createLog({
      level: 'silent',
      format: 'text',
      timeZone: 'UTC',
      instance: 'bare',
      destination: process.stderr,
    })
    const server = createServer({ blueprints: [], settings, log })
    const { address } = await server.start()
    const context = await newContext(browser)
    const page = await context.newPage()
    // Nobody needs to sign in where no clients are named.
    await page.goto(`${address}/dashboard/events`)
    await page.getByText('HISTORY_DATABASE_URI=').waitFor()
    expect(await page.getByRole('combobox', { name: 'Events' }).count()).toBe(0)
    await context.close()
    await server.stop()
  })

  test('[M-02] on a phone the chosen tab of a deep link is in sight', async () => {
    const { page, context, trouble } = await opened({ width: 'phone', locale: 'ru-RU' })
    await page.goto(`${stage.address}/dashboard/jobs/${stage.finishedJob}?tab=raw`)
    const tab = page.getByRole('tab', { name: 'Запись', selected: true })
    await tab.waitFor()
    const right = async (): Promise<number> => {
      const box = await tab.boundingBox()
      return (box?.x ?? Infinity) + (box?.width ?? 0)
    }
    await expect.poll(right).toBeLessThanOrEqual(WIDTHS.phone.width)
    expect(await page.evaluate(WIDER)).toBe(0)
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] events are filtered by what happened, by blueprint and by time, and the address keeps it', async () => {
    const { page, context, trouble } = await opened()
    await page.goto(`${stage.address}/dashboard/events`)
    const rows = page.locator('[data-entry]')
    await rows.first().waitFor()
    await page.getByRole('combobox', { name: 'Events' }).selectOption('job_cancelled')
    await page.getByLabel('Blueprint').selectOption('remind_customer')
    await page.getByLabel('Time').selectOption('hour')
    await page.waitForURL(/event=job_cancelled/)
    const texts = (): Promise<readonly string[]> => rows.allTextContents()
    await expect.poll(async () => new Set(await texts())).toEqual(new Set(['job cancelled']))
    await page.reload()
    await expect.poll(async () => new Set(await texts())).toEqual(new Set(['job cancelled']))
    await page.getByLabel('Blueprint').selectOption('tidy_up')
    await page.getByText('No event fits').waitFor()
    expect(trouble).toEqual([])
    await context.close()
  })

  test('[M-02] [M-07] the language follows the browser, and can be changed', async () => {
    const { page, context } = await opened({ locale: 'ru-RU' })
    await page.getByRole('heading', { name: 'Главная' }).waitFor()
    expect(await page.evaluate('document.documentElement.lang')).toBe('ru')
    // Spans, too, are said in the language.
    await page.goto(`${stage.address}/dashboard/jobs`)
    const took = page.getByTitle('Длительность').filter({ hasText: /^[\d,]+\s(?:мс|с|мин)/ })
    await took.first().waitFor()
    await page.goto(`${stage.address}/dashboard`)
    await page.getByLabel('Язык').selectOption('es')
    await page.getByRole('heading', { name: 'Inicio' }).waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'Inicio' }).waitFor()
    await context.close()
  })

  test('[M-02] the address keeps everything: filters, tabs and chosen states survive reload and going back', async () => {
    const { page, context } = await opened()
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await page.goto(`${stage.address}/dashboard/jobs?show=finished&blueprint=publish_video`)
    await page.getByRole('button', { name: 'Finished', pressed: true }).waitFor()
    const rows = page.locator('[data-row]')
    await expect.poll(() => rows.count()).toBe(3)
    // What the first page needs was asked for before the application was there, and is not asked for again.
    expect(asked.filter((path) => path === '/dashboard/session')).toHaveLength(1)
    expect(asked.indexOf('/api/v1/jobs')).toBeLessThan(asked.indexOf('/api/v1/blueprints'))
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
    await page.goto(`${stage.address}/dashboard/jobs`)
    await page.getByText('No jobs yet').waitFor()
    expect(await page.getByRole('link', { name: 'Start a job' }).count()).toBe(0)
    await page.goto(`${stage.address}/dashboard/jobs/${stage.askingJob}`)
    await page.getByText('There is no such job').waitFor()
    await context.close()
  })

  test('[M-02] changes appear by themselves, in all tabs over one stream; without it the page says that it asks', async () => {
    const { page, context } = await opened()
    // Those that are open: the page of the sign-in may open one too, which ends when the page is left.
    const streams = new Set<Request>()
    context.on('request', (request) => {
      if (request.url().endsWith('/changes')) streams.add(request)
    })
    context.on('requestfailed', (request) => streams.delete(request))
    context.on('requestfinished', (request) => streams.delete(request))
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
      await expect.poll(() => tab.locator('[data-row]').count()).toBe(rows + 1)
    }
    expect([...streams].map((stream) => new URL(stream.url()).pathname)).toEqual(['/api/v1/changes'])
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
