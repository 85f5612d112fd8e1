import { blueprint, child } from '@impresario/core'
import type { Piece } from './stage.ts'
import {
  IGNORED_REQUEST,
  QUICK,
  areSwapped,
  count,
  gather,
  gathered,
  got,
  gotLetters,
  keptApart,
  keyIn,
  task,
  tookTurns,
  trades,
  turnsOf,
} from './stagecraft.ts'

function linear(): Piece {
  return {
    finishes: true,
    flaw: (job) => tookTurns(2)(job) ?? keptApart(job),
    blueprint: blueprint('linear', { start: 'first', ...QUICK }, (state) => ({
      first: state.handler((context, actions) => {
        count(context)
        return actions.dispatchTask(trades.alpha, { params: { ms: 300, value: 1 }, transitions: { success: 'second' } })
      }),
      second: state.handler((context, actions) => {
        count(context)
        return actions.dispatchTask(trades.beta, { params: { ms: 200, value: 2 }, transitions: { success: 'done' } })
      }),
      done: state.end({
        result: (context) => ({
          turns: turnsOf(context),
          first: context.resultOf(trades.alpha).value,
          second: context.resultOf(trades.beta, { from: 'second' }).value,
        }),
      }),
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
        return actions.dispatchTask({ ...call, runTimeout: '4s', attemptsMax: 8, transitions: { success: 'done' } })
      }),
      done: state.end(),
    })),
  }
}

function fanOut(): Piece {
  return {
    finishes: true,
    flaw: gathered(5, 15),
    blueprint: blueprint('fan-out', { start: 'spread', ...QUICK }, (state) => ({
      spread: state.handler((_context, actions) =>
        actions.dispatchParallel(
          {
            odd: [1, 3, 5].map((value) => trades.beta({ ms: 100 * value, value })),
            two: trades.alpha({ ms: 200, value: 2 }),
            four: trades.alpha({ ms: 400, value: 4 }),
          },
          { into: 'meet' },
        ),
      ),
      meet: state.aggregator(
        { odd: [trades.beta], two: trades.alpha, four: trades.alpha },
        ({ results: { odd, two, four }, aggregationResults }, actions) => {
          const swapped = areSwapped([...odd, two, four], [1, 3, 5, 2, 4])
          return actions.transitionTo('done', { ...gather(aggregationResults), swapped })
        },
      ),
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
        actions.dispatchParallel(
          { left: child('fan-out', {}), one: trades.alpha({ value: 1 }), right: child('fan-out', {}) },
          { into: 'meet' },
        ),
      ),
      meet: state.aggregator(
        { left: 'fan-out', one: trades.alpha, right: 'fan-out' },
        ({ results: { one }, aggregationResults }, actions) =>
          actions.transitionTo('done', { ...gather(aggregationResults), swapped: areSwapped([one], [1]) }),
      ),
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
        // [B-14] The result that led here is known.
        if (context.outcomeOf('failing')?.status !== 'failure') throw new Error('The child has not failed.')
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
        const transitions = { yes: 'go', no: 'refused' } as const
        return actions.awaitHumanApproval({ message: 'Shall it go on?', transitions, remindEvery: '2s' })
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

function expiry(): Piece {
  return {
    finishes: true,
    flaw: tookTurns(1),
    blueprint: blueprint('approval-expires', { start: 'ask', ...QUICK }, (state) => ({
      ask: state.handler((context, actions) => {
        count(context)
        const transitions = { yes: 'failed', expired: 'done' } as const
        return actions.awaitHumanApproval({ message: IGNORED_REQUEST, transitions, expires: '3s', remindEvery: '1s' })
      }),
      done: state.end(),
      failed: state.end(),
    })),
  }
}

/** Leaves its task as soon as the worker has found something, and must not be notified twice. */
function search(): Piece {
  return {
    finishes: true,
    flaw: tookTurns(2),
    blueprint: blueprint('search', { start: 'look', ...QUICK }, (state) => ({
      look: state.handler((context, actions) => {
        count(context)
        return actions.dispatchTask({
          ...task('gamma', { ms: 400, says: 'tick found' }),
          attemptsMax: 8,
          transitions: { success: 'look_on' },
          eventTransitions: { found: 'look_on' },
        })
      }),
      look_on: state.handler((context, actions) => {
        count(context)
        return actions.transitionTo('done')
      }),
      done: state.end(),
    })),
  }
}

function delay(): Piece {
  return {
    finishes: true,
    blueprint: blueprint('delay', { start: 'wait', ...QUICK }, (state) => ({
      wait: state.handler((_context, actions) =>
        actions.dispatchTask({
          ...task('slow', { ms: 15_000 }),
          resultTimeout: '4m',
          transitions: { success: 'done' },
        }),
      ),
      done: state.end(),
    })),
  }
}

/** Sleeps twice: for a duration, and until a time that may have passed. */
function nap(): Piece {
  return {
    finishes: true,
    flaw: tookTurns(3),
    blueprint: blueprint('nap', { start: 'rest', ...QUICK }, (state) => ({
      rest: state.handler((context, actions) => {
        count(context)
        return actions.sleep('3s', { to: 'doze' })
      }),
      doze: state.handler((context, actions) => {
        count(context)
        return actions.sleep(new Date(0), { to: 'rise' })
      }),
      rise: state.handler((context, actions) => {
        count(context)
        return actions.transitionTo('done')
      }),
      done: state.end(),
    })),
  }
}

/** Waits for three events: two that may come before the first wait, and one by key that may come before the job. */
function letters(): Piece {
  return {
    finishes: true,
    flaw: gotLetters,
    blueprint: blueprint('letters', { start: 'rest', ...QUICK }, (state) => ({
      rest: state.handler((_context, actions) => actions.sleep('1s', { to: 'first' })),
      first: state.handler((_context, actions) =>
        actions.waitForEvent('ping', { transitions: { received: 'second' } }),
      ),
      second: state.handler((context, actions) => {
        got(context)
        return actions.waitForEvent('ping', { transitions: { received: 'third' } })
      }),
      third: state.handler((context, actions) => {
        got(context)
        const match = keyIn(context.initialData)
        return actions.waitForEvent('pong', { transitions: { received: 'fourth' }, match })
      }),
      fourth: state.handler((context, actions) => {
        got(context)
        return actions.waitForEvent('silence', { transitions: { received: 'failed', timeout: 'done' }, timeout: '2s' })
      }),
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

/** Goes through every kind of waiting, for clients that cancel. */
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
        actions.awaitHumanApproval({ message: 'Was it good?', transitions: { yes: 'last', no: 'last' } }),
      ),
      last: state.handler((_context, actions) => actions.sleep('5s', { to: 'done' })),
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

/** The fifteen blueprints on which every fault is tried. */
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
    search(),
    delay(),
    nap(),
    letters(),
    loop(),
    tour(),
    poison(),
  ]
}

/** The blueprints that the reference pieces run as children. */
export function companionPieces(): readonly Piece[] {
  return [failing()]
}
