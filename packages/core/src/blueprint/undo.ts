import { ImpresarioError, isTaskContract } from '@impresario/protocol'
import type { AnyTaskContract, InputOf, TaskOptions } from '@impresario/protocol'
import type { Action } from '../job/action.ts'
import type { InitialDataOf, LooseData, NamedBlueprint } from './actions.ts'
import { childCallOf, optionsOf, taskCallOf } from './calls.ts'

/** What an undo returns when a worker or a child job does it. */
export interface UndoToken {
  readonly undo: 'task' | 'child'
}

/** What an undo can ask for. Without any of it, the undo is done when its code has run. */
export interface UndoActions {
  /** Sends a task. The undo is done when it has succeeded; a task that fails for good puts the job into quarantine. */
  readonly dispatchTask: UndoTask
  /** Runs another blueprint. The undo is done when it has finished. */
  readonly runBlueprint: UndoChild
}

interface UndoTask {
  <T extends AnyTaskContract>(task: T, options: TaskOptions & { readonly params: NoInfer<InputOf<T>> }): UndoToken
  (options: TaskOptions & { readonly type: string; readonly params?: LooseData }): UndoToken
}

interface UndoChild {
  <B extends NamedBlueprint>(blueprint: B, options: { readonly initialData: NoInfer<InitialDataOf<B>> }): UndoToken
  (options: { readonly name: string; readonly initialData?: LooseData }): UndoToken
}

/** User code after its types have done their work. */
export type AnyUndo = (context: object, actions: UndoActions) => unknown

type Undoing = Extract<Action, { readonly type: 'task' | 'child' | 'undone' }>

/** Writes down what one run of an undo asks for: one thing, or nothing. */
export class UndoRecorder {
  #chosen: { readonly token: UndoToken; readonly action: Undoing } | undefined
  #isOpen = true

  /** Boundary: the implementation takes what JavaScript may pass. */
  readonly actions = {
    dispatchTask: (first: unknown, second?: unknown) => {
      const given = optionsOf(isTaskContract(first) ? second : first, 'dispatchTask')
      const call = taskCallOf(isTaskContract(first) ? { ...given, type: first.name } : given)
      return this.#choose('task', { type: 'task', call, transitions: {} })
    },
    runBlueprint: (first: unknown, second?: unknown) => {
      const target = optionsOf(first, 'runBlueprint')
      const given = second === undefined ? target : optionsOf(second, 'runBlueprint')
      const call = childCallOf({ blueprint: target['name'], initialData: given['initialData'] })
      return this.#choose('child', { type: 'child', call, transitions: {} })
    },
  } as UndoActions

  #choose(undo: UndoToken['undo'], action: Undoing): UndoToken {
    if (!this.#isOpen) throw misuse('asks for something after it has returned. Await everything before you return.')
    if (this.#chosen !== undefined) throw misuse('asks for two things. One task, one blueprint, or code alone.')
    const token: UndoToken = Object.freeze({ undo })
    this.#chosen = { token, action }
    return token
  }

  /** Ends the run. */
  settle(returned: unknown): Undoing {
    this.#isOpen = false
    if (this.#chosen === undefined) return { type: 'undone' }
    if (returned === this.#chosen.token) return this.#chosen.action
    throw misuse('asked for something but did not return it. Write `return actions.dispatchTask(…)`.')
  }
}

function misuse(sentence: string): ImpresarioError {
  return new ImpresarioError('INVALID_BLUEPRINT', `The undo ${sentence}`)
}
