import { blueprint, child } from '@impresario/core'
import type { BranchPolicy, ParallelCall } from '@impresario/core'
import type { Chance } from '../chance.ts'
import { IGNORED_REQUEST } from './stagecraft.ts'
import type { Part, Piece, Stage } from './stage.ts'

/** One state of a random blueprint. */
type Scene =
  | { readonly kind: 'go'; readonly to: string; readonly throws: number }
  | { readonly kind: 'task'; readonly call: Call; readonly success: string; readonly failure: string }
  | { readonly kind: 'spread'; readonly calls: readonly (Call | string)[]; readonly policy: BranchPolicy }
  | { readonly kind: 'child'; readonly name: string; readonly success: string; readonly failure: string }
  | { readonly kind: 'sleep'; readonly ms: number; readonly to: string }
  | { readonly kind: 'person'; readonly expiresMs: number | undefined; readonly yes: string; readonly no: string }

interface Call {
  readonly type: string
  readonly params: Part
  readonly strategy: string
  readonly priority: number
  readonly attemptsMax: number
}

const SCENES = ['one', 'two', 'three', 'four', 'five'] as const
const CHILDREN = ['linear', 'fan-out', 'approval', 'failing', 'tour'] as const

/** A randomly generated blueprint: any state may lead to any other, so some of its jobs loop to the limit. */
export function randomPiece(name: string, chance: Chance, stage: Stage): Piece {
  const scenes = new Map(SCENES.map((scene) => [scene as string, randomScene(chance)]))
  const into = chance.pick([...SCENES, 'done'])
  const sceneOf = (scene: string): Scene => scenes.get(scene) ?? { kind: 'go', to: 'done', throws: 0 }
  const resultSeconds = chance.between(3, 40)
  const limits = {
    backoffMs: 200,
    backoffMsMax: 2_000,
    transitionsMax: 15,
    resultTimeout: 1_000 * resultSeconds,
    retryTimeouts: resultSeconds % 2 === 0,
    ...(chance.happens(0.3) ? { executionTimeout: 1_000 * chance.between(5, 60) } : {}),
  } as const
  const to = [...SCENES, 'meet', 'done', 'failed'] as const
  return {
    finishes: false,
    blueprint: blueprint(name, { start: 'one', ...limits }, (state) => {
      const handler = state.handler(
        (context, actions) => {
          const scene = sceneOf(context.currentState)
          switch (scene.kind) {
            case 'go':
              if (stage.times(`${context.jobId} ${context.currentState}`) <= scene.throws) throw new Error('Not yet.')
              return actions.transitionTo(scene.to)
            case 'task': {
              const { success, failure } = scene
              return actions.dispatchTask({ ...scene.call, transitions: { success, failure } })
            }
            case 'spread':
              return actions.dispatchParallel(scene.calls.map(callOf), { into: 'meet', policy: scene.policy })
            case 'child': {
              const { success, failure } = scene
              return actions.runBlueprint({ name: scene.name, transitions: { success, failure } })
            }
            case 'sleep':
              return actions.sleep(scene.ms, { to: scene.to })
            case 'person': {
              const { expiresMs, yes, no } = scene
              if (expiresMs === undefined) return actions.awaitHumanApproval({ message: '?', transitions: { yes, no } })
              const message = expiresMs < 4_000 ? IGNORED_REQUEST : '?'
              return actions.awaitHumanApproval({ message, transitions: { yes, no, expired: no }, expires: expiresMs })
            }
          }
        },
        { to },
      )
      return {
        one: handler,
        two: handler,
        three: handler,
        four: handler,
        five: handler,
        meet: state.aggregator((_context, actions) => actions.transitionTo(into), { to }),
        done: state.end(),
        failed: state.end(),
      }
    }),
  }
}

function callOf(call: Call | string): ParallelCall {
  return typeof call === 'string' ? child(call, {}) : call
}

function randomScene(chance: Chance): Scene {
  const any = (): string => chance.pick([...SCENES, 'done', 'done', 'done'])
  switch (chance.pick(['go', 'task', 'task', 'task', 'spread', 'spread', 'child', 'person', 'sleep'] as const)) {
    case 'go':
      return { kind: 'go', to: any(), throws: chance.pick([0, 0, 1, 2, 9]) }
    case 'task':
      return { kind: 'task', call: randomCall(chance), success: any(), failure: chance.pick([any(), 'failed']) }
    case 'spread': {
      const count = chance.between(0, 6)
      const calls = Array.from({ length: count }, () =>
        chance.happens(0.15) ? chance.pick(CHILDREN) : randomCall(chance),
      )
      return { kind: 'spread', calls, policy: chance.pick(['wait_all', 'fail_fast', 'by_code']) }
    }
    case 'child':
      return { kind: 'child', name: chance.pick([...CHILDREN, 'not-there']), success: any(), failure: any() }
    case 'sleep':
      return { kind: 'sleep', ms: chance.pick([0, 500, 10_000]), to: any() }
    case 'person':
      return { kind: 'person', expiresMs: chance.pick([undefined, 2_000, 20_000]), yes: any(), no: any() }
  }
}

function randomCall(chance: Chance): Call {
  const part: Part = {
    ms: chance.pick([0, 50, 500, 2_000]),
    value: chance.between(0, 9),
    failTimes: chance.pick([0, 0, 0, 1, 2, 9]),
    ...(chance.happens(0.05) ? { permanent: true } : {}),
  }
  return {
    type: chance.pick(['alpha', 'beta', 'gamma']),
    params: part,
    strategy: chance.pick(['default', 'round_robin', 'least_connections', 'cheapest']),
    priority: chance.between(0, 3),
    attemptsMax: chance.between(1, 4),
  }
}
