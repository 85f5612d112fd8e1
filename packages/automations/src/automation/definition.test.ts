import { describe, expect, test } from 'vitest'
import { Zones } from '@impresario/recurrence'
import { timeTriggers } from '../trigger/spec.ts'
import { readDefinition } from './definition.ts'
import type { AutomationDefinition } from './definition.ts'

const CREATED_AT = Date.UTC(2026, 0, 14, 12, 34, 56)
const TOOLS = {
  named: (name: string) => (name === 'nope' ? undefined : { check: () => [] }),
  similar: () => [],
}

function read(more: object): AutomationDefinition {
  const value = { title: 'A title', pipeline: [{ uses: 'log' }], ...more }
  return readDefinition(value, { tools: TOOLS, timezone: 'Europe/Chisinau', createdAt: CREATED_AT })
}

/** The next times at which it fires, in UTC. */
function firings(definition: AutomationDefinition, count: number): readonly string[] {
  const series = timeTriggers(definition.triggers, new Zones()).map((each) => each.series)
  const times: string[] = []
  let after = CREATED_AT
  while (times.length < count) {
    const next = Math.min(...series.map((each) => each.next(after)?.at ?? Infinity))
    if (!Number.isFinite(next)) break
    times.push(new Date(next).toISOString())
    after = next
  }
  return times
}

describe('[K-02] a definition is read whole', () => {
  test('what is not said has a default', () => {
    expect(read({})).toMatchObject({
      description: '',
      timezone: 'Europe/Chisinau',
      triggers: [{ kind: 'manual' }],
      params: {},
      priority: 5,
      overlap: 'queue',
      concurrency: { key: undefined, limit: 1 },
      dedupe: undefined,
      misfire: { kind: 'run_once' },
      retry: { maxRetries: 3, backoff: 'exponential_jitter' },
    })
  })

  test('everything that can be said', () => {
    const definition = read({
      description: 'Why',
      timezone: 'UTC',
      triggers: [{ cron: '0 9 * * 1-5' }, { kind: 'event', topic: 'github.*', filter: "event.payload.ref == 'main'" }],
      priority: 1,
      overlap: 'restart',
      concurrency: { key: 'db', limit: 2 },
      dedupe: { key: '${event.payload.id}', window_seconds: 60 },
      misfire: { catch_up: { max: 5, spread_seconds: 60 } },
      jitter_seconds: 30,
      calendars: { exclude: ['holidays'] },
      budget: { runs_per_day: 10, usd_per_day: 0.5 },
      retry: { max_retries: 0 },
      timeout_seconds: 600,
    })
    expect(definition).toMatchObject({
      triggers: [{ kind: 'time' }, { kind: 'event', topic: 'github.*' }],
      misfire: { kind: 'catch_up', max: 5, spreadMs: 60_000 },
      dedupe: { windowSeconds: 60 },
      budget: { runsPerDay: 10, usdPerDay: 0.5, tokensPerDay: undefined },
    })
    expect(
      readDefinition(JSON.parse(JSON.stringify({ title: 'x', pipeline: [] })), {
        tools: TOOLS,
        timezone: 'UTC',
        createdAt: 0,
      }).pipeline.steps,
    ).toEqual([])
  })
})

describe('[K-03] time triggers', () => {
  test('weekdays at nine, where 1-5 is Monday to Friday', () => {
    const definition = read({ trigger: { cron: '0 9 * * 1-5', timezone: 'UTC' } })
    expect(firings(definition, 3)).toEqual([
      '2026-01-15T09:00:00.000Z',
      '2026-01-16T09:00:00.000Z',
      '2026-01-19T09:00:00.000Z',
    ])
  })

  test('the last Friday of the month at 17:00, to the second', () => {
    const definition = read({ trigger: { rrule: 'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17', timezone: 'UTC' } })
    expect(firings(definition, 2)).toEqual(['2026-01-30T17:00:00.000Z', '2026-02-27T17:00:00.000Z'])
  })

  test('a rule begins when the automation is created, so that COUNT runs out and INTERVAL keeps its phase', () => {
    const definition = read({ trigger: { rrule: 'FREQ=DAILY;COUNT=2;BYHOUR=8', timezone: 'UTC' } })
    expect(firings(definition, 5)).toEqual(['2026-01-15T08:00:00.000Z', '2026-01-16T08:00:00.000Z'])
  })

  test('once, where the offset wins over the zone', () => {
    const definition = read({ trigger: { once: '2026-12-25T09:00:00+02:00', timezone: 'America/New_York' } })
    expect(firings(definition, 2)).toEqual(['2026-12-25T07:00:00.000Z'])
  })

  test('several triggers, dates left out, and zones of all kinds', () => {
    const definition = read({
      triggers: [
        {
          rrule: 'FREQ=DAILY;BYHOUR=9',
          dtstart: '2026-01-15T09:00:00',
          exdate: '2026-01-16T09:00:00',
          timezone: 'UTC',
        },
        { cron: '30 9 15 1 *', timezone: 'America/Argentina/Buenos_Aires' },
      ],
    })
    expect(firings(definition, 3)).toEqual([
      '2026-01-15T09:00:00.000Z',
      '2026-01-15T12:30:00.000Z',
      '2026-01-17T09:00:00.000Z',
    ])
  })
})

describe('[K-06] condition triggers', () => {
  test('over the output of a tool, or over reported values', () => {
    const { triggers } = read({
      triggers: [
        {
          condition: 'output.free_percent < 10',
          reset: 'output.free_percent > 15',
          uses: 'disk',
          every_seconds: 30,
          for_seconds: 60,
        },
        { kind: 'condition', expression: 'output.error_rate > 5', cooldown_seconds: 600 },
      ],
    })
    expect(triggers).toMatchObject([
      { kind: 'condition', tool: { uses: 'disk', everySeconds: 30 }, forSeconds: 60, cooldownSeconds: 0 },
      { kind: 'condition', tool: undefined, cooldownSeconds: 600 },
    ])
  })
})

describe('[K-02] what cannot work is refused when it is created, with the field', () => {
  test.each<[object, RegExp]>([
    [{ title: '' }, /valid\. title: Must be text that is not empty\.$/],
    [{ trigger: { every: '15m' } }, /valid\. triggers\[0\]\.every: Must be a whole number from 1 to 31536000\.$/],
    [{ trigger: { every: null, kind: 'every' } }, /triggers\[0\]\.every: Say how often\.$/],
    [{ pipeline: undefined }, /pipeline: Must be a list of steps/],
    [{ trigger: { cron: 'banana' } }, /triggers\[0\].cron: /],
    [{ trigger: { cron: '0 9 31 2 *' } }, /triggers\[0\].cron: /],
    [{ timezone: 'Mars/Base' }, /timezone: .*Mars\/Base/],
    [{ trigger: { rrule: 'FREQ=SOMETIMES' } }, /triggers\[0\].rrule: /],
    [{ trigger: { once: 'soon' } }, /triggers\[0\].once: /],
    [{ trigger: {} }, /triggers\[0\].kind: Must be one of cron/],
    [{ trigger: 'daily' }, /triggers\[0\]: Must be an object/],
    [{ trigger: { event: 'git hub' } }, /is not a topic pattern/],
    [{ trigger: { event: 'a', filter: 'x ==' } }, /triggers\[0\].filter: Expression/],
    [{ trigger: { condition: 'steps.x > 1' } }, /"steps" is not known here/],
    [{ trigger: { condition: 'output.x', uses: 'nope' } }, /There is no tool "nope"/],
    [{ trigger: { condition: 'output.x', every_seconds: 1 } }, /Must be a number from 5 to/],
    [{ trigger: { kind: 'webhook' } }, /source: Name the webhook source/],
    [{ priority: 0 }, /priority: Must be a whole number from 1 to 9/],
    [{ misfire: 'sometimes' }, /misfire: Must be "skip"/],
    [{ dedupe: { key: '${steps.x}' } }, /dedupe.key: .*"steps" is not known here/],
    [{ retry: { max_retries: 11 } }, /retry.max_retries/],
    [{ overlap: 'maybe' }, /overlap: Must be one of queue, skip, restart, parallel/],
    [{ calendars: { exclude: [5] } }, /calendars.exclude: Must be a list/],
    [{ schedule: 'x' }, /schedule: There is no such field/],
    [{ triggers: Array.from({ length: 21 }, () => ({ kind: 'manual' })) }, /There can be 20 triggers/],
  ])('%j', (more, message) => {
    expect(() => read(more)).toThrow(message)
  })
})
