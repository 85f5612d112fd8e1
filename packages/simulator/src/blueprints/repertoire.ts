import { blueprint, child } from '@impresario/core'
import type { Job } from '@impresario/core'
import { isJsonObject } from '@impresario/protocol'
import type { Part, Piece, Stage } from './stage.ts'

/** Short waits, so that a world of two minutes sees many of them. */
const QUICK = { backoffMs: 200, backoffMsMax: 2_000, resultTimeout: '40s' } as const

interface Counted {
  readonly stateHistory: { turns?: number }
}

/** Counts the handler runs that were accepted: each leaves its count in the history with its choice. */
function count({ stateHistory }: Counted): void {
  stateHistory.turns = (stateHistory.turns ?? 0) + 1
}

function task(type: string, part: Part = {}): { readonly type: string; readonly params: Part } {
  return { type, params: part }
}

/** A job that a person sent back has more turns than its path has states. */
function tookTurns(turns: number): (job: Job) => string | undefined {
  return (job) => {
    if (job.status !== 'finished' || job.loopFrom !== undefined) return undefined
    const taken = isJsonObject(job.result) ? job.result['turns'] : undefined
    return taken === turns ? undefined : `${job.id} took ${String(taken)} turns instead of ${turns}`
  }
}

function linear(): Piece {
  return {
    finishes: true,
    flaw: tookTurns(2),
    blueprint: blueprint('linear', { start: 'first', ...QUICK }, (state) => ({
      first: state.handler((context, actions) => {
        count(context)
        return actions.dispatchTask({ ...task('alpha', { ms: 300, value: 1 }), transitions: { success: 'second' } })
      }),
      second: state.handler((context, actions) => {
        count(context)
        return actions.dispatchTask({ ...task('beta', { ms: 200, value: 2 }), transitions: { success: 'done' } })
      }),
      done: state.end(),
    })),
  }
}

function retry(): Piece {
  return {
    finishes: true,
    flaw: tookTurns(1),
    blueprint: blueprint('retry', { start: 'try', ...QUICK }, (state) => ({
      try: state.handler((context, actions) => {
        count(context)
        const call = task('alpha', { ms: 100, failTimes: 2 })
        return actions.dispatchTask({ ...call, attemptsMax: 8, transitions: { success: 'done' } })
      }),
      done: state.end(),
    })),
  }
}

/** The aggregator must see each branch once, and the sum of what they gave if all succeeded (where it is known). */
function gathered(branches: number, sum?: number): (job: Job) => string | undefined {
  return (job) => {
    if (job.status !== 'finished' || !isJsonObject(job.result)) return undefined
    const { seen, succeeded, total } = job.result
    if (seen !== branches) return `${job.id} gathered ${String(seen)} branches instead of ${branches}`
    if (sum !== undefined && succeeded === branches && total !== sum) return `${job.id} gathered ${String(total)} instead of ${sum}`
    return undefined
  }
}

type Results = Readonly<Record<string, { readonly status: string; readonly data?: unknown }>>

function gather(results: Results): { seen: number; succeeded: number; total: number } {
  const all = Object.values(results)
  const succeeded = all.filter(({ status }) => status === 'success')
  const total = succeeded.reduce((sum, { data }) => sum + valueOf(data), 0)
  return { seen: all.length, succeeded: succeeded.length, total }
}

function valueOf(data: unknown): number {
  if (!isJsonObject(data)) return 0
  return Number(data['value'] ?? data['total'] ?? 0)
}

function fanOut(): Piece {
  return {
    finishes: true,
    flaw: gathered(5, 15),
    blueprint: blueprint('fan-out', { start: 'spread', ...QUICK }, (state) => ({
      spread: state.handler((_context, actions) =>
        actions.dispatchParallel(
          [1, 2, 3, 4, 5].map((value) => task(value % 2 === 0 ? 'alpha' : 'beta', { ms: 100 * value, value })),
          { into: 'meet' },
        ),
      ),
      meet: state.aggregator((context, actions) => actions.transitionTo('done', gather(context.aggregationResults))),
      done: state.end(),
    })),
  }
}

function failFast(): Piece {
  return {
    finishes: true,
    flaw: gathered(3),
    blueprint: blueprint('fail-fast', { start: 'spread', ...QUICK }, (state) => ({
      spread: state.handler((_context, actions) =>
        actions.dispatchParallel(
          [task('alpha', { ms: 5_000 }), task('beta', { ms: 200, permanent: true }), child('approval', {})],
          { into: 'meet', policy: 'fail_fast' },
        ),
      ),
      meet: state.aggregator((context, actions) => actions.transitionTo('done', gather(context.aggregationResults))),
      done: state.end(),
    })),
  }
}

function nested(): Piece {
  return {
    finishes: true,
    flaw: gathered(3),
    blueprint: blueprint('nested', { start: 'spread', ...QUICK }, (state) => ({
      spread: state.handler((_context, actions) =>
        actions.dispatchParallel([child('fan-out', {}), task('alpha', { value: 1 }), child('fan-out', {})], {
          into: 'meet',
        }),
      ),
      meet: state.aggregator((context, actions) => actions.transitionTo('done', gather(context.aggregationResults))),
      done: state.end(),
    })),
  }
}

function parent(): Piece {
  return {
    finishes: true,
    flaw: tookTurns(1),
    blueprint: blueprint('parent', { start: 'ask', ...QUICK }, (state) => ({
      ask: state.handler((context, actions) => {
        count(context)
        return actions.runBlueprint({ name: 'linear', transitions: { success: 'done' } })
      }),
      done: state.end(),
    })),
  }
}

function failing(): Piece {
  return {
    finishes: false,
    blueprint: blueprint('failing', { start: 'try', ...QUICK }, (state) => ({
      try: state.handler((_context, actions) =>
        actions.dispatchTask({
          ...task('beta', { ms: 50, permanent: true }),
          transitions: { success: 'done', failure: 'failed' },
        }),
      ),
      done: state.end(),
      failed: state.end(),
    })),
  }
}

function failedChild(): Piece {
  return {
    finishes: true,
    flaw: tookTurns(2),
    blueprint: blueprint('failed-child', { start: 'ask', ...QUICK }, (state) => ({
      ask: state.handler((context, actions) => {
        count(context)
        return actions.runBlueprint({ name: 'failing', transitions: { success: 'done', failure: 'mend' } })
      }),
      mend: state.handler((context, actions) => {
        count(context)
        return actions.transitionTo('done')
      }),
      done: state.end(),
    })),
  }
}

function approval(): Piece {
  return {
    finishes: true,
    flaw: tookTurns(2),
    blueprint: blueprint('approval', { start: 'ask', ...QUICK }, (state) => ({
      ask: state.handler((context, actions) => {
        count(context)
        return actions.awaitHumanApproval({ message: 'Shall it go on?', transitions: { yes: 'go', no: 'refused' } })
      }),
      go: state.handler((context, actions) => {
        count(context)
        return actions.transitionTo('done')
      }),
      done: state.end(),
      refused: state.end({ outcome: 'failed' }),
    })),
  }
}

/** Messages that begin like this are left alone by the simulated person. */
export const IGNORED_REQUEST = 'Nobody will answer'

function expiry(): Piece {
  return {
    finishes: true,
    flaw: tookTurns(1),
    blueprint: blueprint('approval-expires', { start: 'ask', ...QUICK }, (state) => ({
      ask: state.handler((context, actions) => {
        count(context)
        const transitions = { yes: 'failed', expired: 'done' } as const
        return actions.awaitHumanApproval({ message: IGNORED_REQUEST, transitions, expires: '3s' })
      }),
      done: state.end(),
      failed: state.end(),
    })),
  }
}

function delay(): Piece {
  return {
    finishes: true,
    blueprint: blueprint('delay', { start: 'wait', ...QUICK }, (state) => ({
      wait: state.handler((_context, actions) =>
        actions.dispatchTask({ ...task('slow', { ms: 15_000 }), resultTimeout: '4m', transitions: { success: 'done' } }),
      ),
      done: state.end(),
    })),
  }
}

function loop(): Piece {
  return {
    finishes: false,
    flaw: (job) => (job.status === 'finished' ? `${job.id} got out of an endless loop` : undefined),
    blueprint: blueprint('loop', { start: 'here', ...QUICK, transitionsMax: 8 }, (state) => ({
      here: state.handler((_context, actions) => actions.transitionTo('there')),
      there: state.handler((_context, actions) => actions.transitionTo('here')),
      done: state.end(),
    })),
  }
}

/** Goes through every kind of waiting, for clients that change their mind. */
function tour(): Piece {
  return {
    finishes: true,
    blueprint: blueprint('tour', { start: 'first', ...QUICK }, (state) => ({
      first: state.handler((_context, actions) =>
        actions.dispatchTask({ ...task('alpha', { ms: 500 }), transitions: { success: 'second' } }),
      ),
      second: state.handler((_context, actions) =>
        actions.dispatchParallel([task('alpha', { ms: 800 }), task('beta', { ms: 400 })], { into: 'third' }),
      ),
      third: state.aggregator((_context, actions) =>
        actions.runBlueprint({ name: 'approval', transitions: { success: 'fourth', failure: 'fourth' } }),
      ),
      fourth: state.handler((_context, actions) =>
        actions.awaitHumanApproval({ message: 'Was it good?', transitions: { yes: 'done', no: 'done' } }),
      ),
      done: state.end(),
    })),
  }
}

function poison(): Piece {
  return {
    finishes: false,
    flaw: (job) => (job.status === 'finished' ? `${job.id} finished although its handler always throws` : undefined),
    blueprint: blueprint('poison', { start: 'fall', ...QUICK }, (state) => ({
      fall: state.handler(
        () => {
          throw new Error('This handler always fails.')
        },
        { to: ['done'] },
      ),
      done: state.end(),
    })),
  }
}

/** The twelve that every fault is tried on. */
export function referencePieces(): readonly Piece[] {
  return [
    linear(),
    retry(),
    fanOut(),
    nested(),
    parent(),
    failedChild(),
    approval(),
    expiry(),
    delay(),
    loop(),
    tour(),
    poison(),
  ]
}

/** Those that the reference pieces run as children, and rarer ones. */
export function sidePieces(stage: Stage): readonly Piece[] {
  return [failing(), failFast(), flaky(stage), hanging(stage), unwanted(), killer(), deadly(), mortal()]
}

function flaky(stage: Stage): Piece {
  return {
    finishes: true,
    flaw: tookTurns(1),
    blueprint: blueprint('flaky', { start: 'try', ...QUICK }, (state) => ({
      try: state.handler((context, actions) => {
        count(context)
        if (stage.times(`flaky ${context.jobId}`) <= 2) throw new Error('Not yet.')
        return actions.transitionTo('done')
      }),
      done: state.end(),
    })),
  }
}

function hanging(stage: Stage): Piece {
  return {
    finishes: true,
    flaw: tookTurns(1),
    blueprint: blueprint('hanging', { start: 'try', ...QUICK }, (state) => ({
      try: state.handler(async (context, actions) => {
        count(context)
        // The first run never answers; the second one is late, yet in time.
        await stage.sleep(stage.times(`hanging ${context.jobId}`) === 1 ? 1_000_000_000 : 1_500)
        return actions.transitionTo('done')
      }),
      done: state.end(),
    })),
  }
}

function unwanted(): Piece {
  return {
    finishes: true,
    blueprint: blueprint('unwanted', { start: 'ask', ...QUICK }, (state) => ({
      ask: state.handler((_context, actions) =>
        actions.dispatchTask({
          ...task('nobody-can'),
          dispatchTimeout: '2s',
          transitions: { success: 'failed', timeout: 'done' },
        }),
      ),
      done: state.end(),
      failed: state.end(),
    })),
  }
}

function killer(): Piece {
  return {
    finishes: true,
    blueprint: blueprint('killer', { start: 'strike', ...QUICK }, (state) => ({
      strike: state.handler((_context, actions) =>
        actions.dispatchTask({
          ...task('gamma', { kills: 2 }),
          resultTimeout: '10m',
          transitions: { success: 'done' },
        }),
      ),
      done: state.end(),
    })),
  }
}

function deadly(): Piece {
  return {
    finishes: false,
    blueprint: blueprint('deadly', { start: 'strike', ...QUICK }, (state) => ({
      strike: state.handler((_context, actions) =>
        actions.dispatchTask({
          ...task('gamma', { kills: 1_000 }),
          resultTimeout: '30m',
          transitions: { success: 'done' },
        }),
      ),
      done: state.end(),
    })),
  }
}

function mortal(): Piece {
  return {
    finishes: false,
    blueprint: blueprint('mortal', { start: 'ask', ...QUICK, executionTimeout: '8s' }, (state) => ({
      ask: state.handler((_context, actions) =>
        actions.runBlueprint({ name: 'tour', transitions: { success: 'rest', failure: 'rest' } }),
      ),
      rest: state.handler((_context, actions) =>
        actions.awaitHumanApproval({ message: IGNORED_REQUEST, transitions: { yes: 'done' } }),
      ),
      done: state.end(),
    })),
  }
}
