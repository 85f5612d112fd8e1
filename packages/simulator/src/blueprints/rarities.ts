import { blueprint, child } from '@impresario/core'
import type { Piece, Stage } from './stage.ts'
import { IGNORED_REQUEST, QUICK, areSwapped, count, gather, gathered, task, tookTurns, trades } from './stagecraft.ts'

/** Rarer ones. */
export function sidePieces(stage: Stage): readonly Piece[] {
  return [failFast(), flaky(stage), hanging(stage), unwanted(), killer(), deadly(), mortal(), hasty(), lethal(stage)]
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
        // The first run never responds; the second one is slow, but in time.
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

/** Fails until its deadline: every try has less time than the previous one, and it ends by the timeout or in time. */
function hasty(): Piece {
  return {
    finishes: true,
    blueprint: blueprint('hasty', { start: 'ask', ...QUICK, retryTimeouts: false }, (state) => ({
      ask: state.handler((_context, actions) =>
        actions.dispatchTask({
          ...task('beta', { ms: 300, failTimes: 4 }),
          attemptsMax: 50,
          resultTimeout: '3s',
          runTimeout: '2s',
          transitions: { success: 'done', timeout: 'late' },
        }),
      ),
      late: state.handler((_context, actions) => actions.transitionTo('done')),
      done: state.end(),
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

/** Crashes the process in each of its runs: [C-11] after a few of them it waits for a person, who may retry it. */
function lethal(stage: Stage): Piece {
  return {
    finishes: false,
    blueprint: blueprint('lethal', { start: 'strike', ...QUICK }, (state) => ({
      strike: state.handler(async (_context, actions) => {
        stage.strike()
        await stage.sleep(1_000_000_000)
        return actions.transitionTo('done')
      }),
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
          {
            slow: trades.alpha({ ms: 5_000, value: 7 }),
            broken: trades.beta({ ms: 200, permanent: true }),
            child: child('approval', {}),
          },
          { into: 'meet', policy: 'fail_fast' },
        ),
      ),
      meet: state.aggregator(
        { slow: trades.alpha, broken: trades.beta, child: 'approval' },
        ({ results: { slow, broken }, aggregationResults }, actions) => {
          const swapped = broken.status === 'success' || areSwapped([slow], [7])
          return actions.transitionTo('done', { ...gather(aggregationResults), swapped })
        },
      ),
      done: state.end(),
    })),
  }
}
