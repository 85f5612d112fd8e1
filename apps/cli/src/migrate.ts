import type { TransferPlan, TransferProgress, TransferReport } from '@impresario/server'
import { COMMAND, EXIT, usage } from './failure.ts'
import { printJson } from './screen.ts'
import type { Screen } from './screen.ts'
import { done, screenFor } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { table } from './table.ts'
import { span } from './time.ts'

export interface MigrateCommandOptions extends GlobalOptions {
  readonly dryRun?: boolean
  readonly force?: boolean
  readonly keepSource?: boolean
  readonly restart?: boolean
  readonly unmark?: boolean
  readonly page: number
}

/** Values and payloads of one page; a page with a single entry may have more. */
const PAGE_BYTES = 4_000_000

/** Moves everything from one storage to another, looks at what that would mean, or takes a mark away. */
export async function runMigrate(
  given: { readonly from: string; readonly to: string | undefined },
  options: MigrateCommandOptions,
): Promise<number> {
  const screen = screenFor(options)
  const from = addressOf(given.from)
  if (options.unmark === true) {
    if (given.to !== undefined) throw usage('--unmark takes one address.', `${COMMAND} migrate --unmark <storage>`)
    return takeMark(from, screen, options.force === true)
  }
  if (given.to === undefined) {
    throw usage('Name the target storage.', `${COMMAND} migrate file:./impresario-data redis://host:6379`)
  }
  const to = addressOf(given.to)
  return options.dryRun === true ? showPlan({ from, to }, screen) : transferAll({ from, to }, screen, options)
}

async function transferAll(
  { from, to }: { readonly from: string; readonly to: string },
  screen: Screen,
  { force = false, keepSource = false, restart = false, page }: MigrateCommandOptions,
): Promise<number> {
  const { transferStorage } = await import('@impresario/server')
  const begun = performance.now()
  const meter = new Meter(screen)
  const size = { entriesMax: page, bytesMax: PAGE_BYTES }
  const onProgress = (progress: TransferProgress): void => meter.show(progress)
  const report = await transferStorage({ from, to, force, keepSource, restart, size, onProgress }).finally(() =>
    meter.end(),
  )
  const seconds = (performance.now() - begun) / 1_000
  const notes = report.outcome === 'earlier' ? [] : notesFor(from, to)
  if (screen.isJson) {
    const { move, outcome, isResumed, entries, total } = report
    printJson(screen, { move, outcome, resumed: isResumed, total, seconds: Number(seconds.toFixed(3)), entries, notes })
    return EXIT.ok
  }
  showReport(report, screen, seconds)
  for (const note of notes) screen.out(`  ${note}`)
  return EXIT.ok
}

function showReport({ outcome, isResumed, entries, total }: TransferReport, screen: Screen, seconds: number): void {
  if (outcome === 'earlier') {
    screen.out(`${screen.paint('green', '✓')} This move was finished before; there is nothing left to do.`)
    return
  }
  const rows = Object.entries(entries).map(([name, sum]) => ({ name, ...sum }))
  if (rows.length > 0) {
    screen.out(
      table(screen, rows, [
        { title: 'what', cell: ({ name }) => name },
        { title: 'entries', cell: ({ count }) => count.toLocaleString('en'), align: 'right' },
        { title: 'checksum on both sides', cell: ({ checksum }) => checksum },
      ]),
    )
  }
  const rest = isResumed ? ', with what an earlier run had copied' : ''
  const what = `${total.toLocaleString('en')} entries ${outcome} and read back in ${span(seconds)}${rest}.`
  screen.out(`${screen.paint('green', '✓')} ${what}`)
  if (outcome === 'moved') screen.out('  Orchestrators start on the new storage only: set STORAGE_URL to it.')
}

/** What a directory holds beside the storage, and where it belongs from now on. */
function notesFor(from: string, to: string): readonly string[] {
  if (!from.startsWith('file:') || to.startsWith('file:')) return []
  const directory = from.slice('file:'.length).replace(/^\/\//, '')
  return [
    `Links and webhook secrets stay good with SECRET_KEY="$(cat ${directory}/secret.key)", unless SECRET_KEY is set already.`,
    `The history stays in ${directory}/history.db; HISTORY_DATABASE_URI says where it is kept from now on.`,
  ]
}

async function showPlan(addresses: { readonly from: string; readonly to: string }, screen: Screen): Promise<number> {
  const { planTransfer } = await import('@impresario/server')
  const plan = await planTransfer(addresses)
  if (screen.isJson) {
    const { from, to, source, target, users } = plan
    const marks = { source_mark: plan.sourceMark?.state ?? null, target_mark: plan.targetMark?.state ?? null }
    printJson(screen, { from, to, source, target: target ?? null, users, ...marks })
    return EXIT.ok
  }
  const rows = countRows(plan)
  screen.out(
    table(screen, rows, [
      { title: 'what', cell: ({ name }) => name },
      { title: 'in the source', cell: ({ source }) => source.toLocaleString('en'), align: 'right' },
      { title: 'in the target', cell: ({ target }) => target.toLocaleString('en'), align: 'right' },
    ]),
  )
  if (plan.target === undefined) screen.out(`${plan.to} does not exist yet and would be created.`)
  for (const [name, mark] of [
    [plan.from, plan.sourceMark],
    [plan.to, plan.targetMark],
  ] as const) {
    if (mark !== undefined) screen.out(`${name} is marked as ${mark.state} (${mark.other}, ${mark.since}).`)
  }
  if (plan.users.length > 0) screen.out(`${plan.from} is in use by ${plan.users.join(', ')}.`)
  screen.out('Nothing was changed.')
  return EXIT.ok
}

function countRows({ source, target }: TransferPlan): readonly {
  readonly name: string
  readonly source: number
  readonly target: number
}[] {
  const kinds = new Set([...Object.keys(source.records), ...Object.keys(target?.records ?? {})])
  const queues = new Set([...Object.keys(source.items), ...Object.keys(target?.items ?? {})])
  return [
    ...[...kinds].sort().map((kind) => ({
      name: kind,
      source: source.records[kind] ?? 0,
      target: target?.records[kind] ?? 0,
    })),
    ...[...queues].sort().map((queue) => ({
      name: `${queue} queue`,
      source: source.items[queue] ?? 0,
      target: target?.items[queue] ?? 0,
    })),
  ]
}

async function takeMark(address: string, screen: Screen, force: boolean): Promise<number> {
  const { unmark } = await import('@impresario/server')
  const mark = await unmark(address, { force })
  if (mark === undefined) return done(screen, 'There was no mark. Orchestrators can start here.', { mark: null })
  const { state, other, since } = mark
  return done(screen, `The mark "${state}" (${other}, ${since}) was removed. Orchestrators can start here.`, {
    mark: { state, other, since },
  })
}

/** An address may hold a password: with `env:NAME` it is read from the environment, where others do not see it. */
function addressOf(given: string): string {
  if (!given.startsWith('env:')) return given
  const name = given.slice('env:'.length)
  const address = process.env[name]
  if (address !== undefined && address !== '') return address
  throw usage(`The environment has no ${name}.`, `Set it to an address, such as ${name}=redis://host:6379.`)
}

/** How often a line is written where none can be drawn over. */
const LINE_MS = 5_000
const DRAW_MS = 200

/** How far it is, on the error stream: a line that is drawn over on a terminal, else one every few seconds. */
class Meter {
  readonly #screen: Screen
  #shownAt = -Infinity
  #begun: { readonly phase: string; readonly at: number; readonly done: number } | undefined = undefined
  #hasLine = false

  constructor(screen: Screen) {
    this.#screen = screen
  }

  show({ phase, done: count, total }: TransferProgress): void {
    if (this.#screen.isJson) return
    const now = performance.now()
    if (this.#begun?.phase !== phase) this.#begun = { phase, at: now, done: count }
    if (now - this.#shownAt < (this.#screen.isTerminal ? DRAW_MS : LINE_MS)) return
    this.#shownAt = now
    const seconds = (now - this.#begun.at) / 1_000
    const rate =
      seconds > 0.5 ? `, ${Math.round((count - this.#begun.done) / seconds).toLocaleString('en')} a second` : ''
    const text = `${phase} ${count.toLocaleString('en')} of ${Math.max(total, count).toLocaleString('en')}${rate}`
    if (!this.#screen.isTerminal) {
      this.#screen.err(text)
      return
    }
    process.stderr.write(`\r\u001B[2K${text}`)
    this.#hasLine = true
  }

  end(): void {
    if (this.#hasLine) process.stderr.write('\r\u001B[2K')
  }
}
