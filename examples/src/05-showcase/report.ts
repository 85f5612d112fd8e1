import type { Assignment } from './workers.ts'

/** A job entered a state, so long after its beginning. */
export interface Visit {
  readonly state: string
  readonly afterSeconds: number
}

export interface ChildFindings {
  readonly visits: readonly Visit[]
  /** What workers told it. */
  readonly events: readonly string[]
}

export interface OrderFindings {
  readonly id: string
  readonly status: string
  readonly visits: readonly Visit[]
  /** By the name of their blueprint. */
  readonly children: Readonly<Record<string, ChildFindings>>
  /** Those of its children, too. */
  readonly assignments: readonly Assignment[]
  readonly result: {
    readonly parcel: string
    readonly proof: string | null
    readonly run: { readonly plates: readonly string[]; readonly sheets: number; readonly inspected: number }
  }
}

export interface Reputations {
  readonly tim: number
  readonly ines: number
}

/** What there is to know after the two orders. */
export interface Findings {
  readonly poster: OrderFindings
  readonly flyer: OrderFindings
  /** Why the drying rack stopped. */
  readonly rackStopped: string
  /** What the customer was asked, and how the server answered the first and the second press of the link. */
  readonly approval: { readonly message: string; readonly first: number; readonly second: number }
  /** The jobs that schedules have started. */
  readonly scheduled: readonly { readonly schedule: string; readonly status: string; readonly result?: unknown }[]
  readonly reputations: { readonly before: Reputations; readonly after: Reputations }
  readonly webhooks: {
    readonly verified: readonly { readonly event: string; readonly jobId: string }[]
    readonly refused: number
  }
}

/** How many tasks of a type each worker was given. */
export function shares(assignments: readonly Assignment[], type: string): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const one of assignments) {
    if (one.type === type) counts[one.worker] = (counts[one.worker] ?? 0) + 1
  }
  return counts
}

/** What is worth knowing about a step, by where it leads from and to. */
const NOTES: Readonly<Record<string, string>> = {
  'received check': 'a condition: large orders are looked at first',
  'check retouch': 'a status of its own: too_coarse',
  'proof approval': 'a child blueprint',
  'dry ready': 'an event of the worker: touch_dry',
  'approval run': 'a person said yes',
  'run pack': 'another child blueprint',
  'plates plates_made': 'a fan-out: five times dispatchTask',
  'print printed': 'a fan-out: dispatchParallel',
  'inspect inspected': 'a fan-out, with second tries for what was botched',
}

/** The findings as lines for a terminal. */
export function reportLines(findings: Findings): readonly string[] {
  const { poster, flyer, webhooks } = findings
  return [
    'The way of the poster',
    ...timeline(poster),
    `The flyer took the short way: ${flyer.visits.map(({ state }) => state).join(', ')}`,
    '',
    'Who was chosen, and why',
    ...grid([
      ['  strategy', 'task', 'given to', 'because'],
      ['  default', 'check', sharesOf(poster, 'shop.check'), 'the colour profile is loaded there already'],
      ['  cheapest', 'retouch', sharesOf(poster, 'shop.retouch'), 'otto asks less than lena'],
      ['  least_connections', 'plate', sharesOf(poster, 'shop.plate'), 'each time the one with fewer tasks'],
      ['  round_robin', 'print', sharesOf(poster, 'shop.print'), 'they take turns ...'],
      ['', '', sharesOf(flyer, 'shop.print'), '... and go on where they were with the next order'],
      ['  best_value', 'inspect', 'see below', 'price divided by reputation'],
    ]),
    '',
    'The inspections: work moves away from the one who botches it',
    ...grid(inspectionRows(findings)),
    '',
    'The schedule has started',
    ...findings.scheduled.map(({ schedule, status, result }) => {
      return `  one job of ${schedule}: ${status} with ${JSON.stringify(result)}`
    }),
    '',
    'The webhook receiver has',
    `  verified the signatures of ${webhooks.verified.length}: ${counted(webhooks.verified.map(({ event }) => event))}`,
    `  refused ${webhooks.refused} that somebody had forged`,
  ]
}

/** The states of an order, with those of its children where they belong. */
function timeline({ visits, children }: OrderFindings): readonly string[] {
  const rows = visits.flatMap((visit, index) => {
    const child = children[CHILD_IN[visit.state] ?? '']?.visits ?? []
    const inside = child.map((inner, place) => step(inner, child[place + 1], visit.afterSeconds, '  '))
    return [step(visit, visits[index + 1], 0, ''), ...inside]
  })
  return grid(rows)
}

/** Which child runs in which state. */
const CHILD_IN: Readonly<Record<string, string>> = { proof: 'proof_print', run: 'print_run' }

function step(
  { state, afterSeconds }: Visit,
  next: Visit | undefined,
  offset: number,
  indent: string,
): readonly string[] {
  const at = (afterSeconds + offset).toFixed(1).padStart(4)
  return [`  ${at} s`, indent + state, NOTES[`${state} ${next?.state ?? ''}`] ?? '']
}

function inspectionRows({ poster, flyer, reputations: { before, after } }: Findings): readonly (readonly string[])[] {
  const first = shares(
    poster.assignments.filter(({ attempt }) => attempt === 1),
    'shop.inspect',
  )
  const all = shares(poster.assignments, 'shop.inspect')
  const later = shares(flyer.assignments, 'shop.inspect')
  const row = (name: keyof Reputations, price: string): readonly string[] => {
    const tries = first[name] ?? 0
    const again = (all[name] ?? 0) - tries
    return [
      `  ${name}`,
      price,
      `${before[name].toFixed(2)} → ${after[name].toFixed(2)}`,
      `${tries}${again === 0 ? '' : ` + ${again} again`}`,
      String(later[name] ?? 0),
    ]
  }
  return [
    ['  inspector', 'asks per s', 'reputation', 'of the poster', 'of the flyer'],
    row('tim', '0.020'),
    row('ines', '0.025'),
  ]
}

function sharesOf({ assignments }: OrderFindings, type: string): string {
  const given = Object.entries(shares(assignments, type)).toSorted(([a], [b]) => a.localeCompare(b))
  return given.map(([name, count]) => `${name} ×${count}`).join(', ')
}

function counted(names: readonly string[]): string {
  return [...new Set(names)].map((name) => `${name} ×${names.filter((one) => one === name).length}`).join(', ')
}

function grid(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('   ')
      .trimEnd(),
  )
}
