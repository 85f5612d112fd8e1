import { ImpresarioError } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { Intake } from './intake.ts'
import type { EndedTask, FileTask, TaskQueue } from './task.ts'

/** Takes tasks, and ends them when a test says so. */
class HeldQueue implements Pick<TaskQueue, 'enqueue' | 'room' | 'onEnded'> {
  readonly tasks: FileTask[] = []
  #listener: (task: EndedTask) => void = () => undefined

  async enqueue(task: FileTask): Promise<string> {
    this.tasks.push(task)
    return String(this.tasks.length)
  }
  async room(): Promise<void> {}
  onEnded(listener: (task: EndedTask) => void): void {
    this.#listener = listener
  }
  end(task: FileTask): void {
    this.#listener({ ...task, jobId: '1', isCompleted: true, error: undefined })
  }
}

const gone: FileTask = { path: '/a.txt', change: 'gone', priority: 1 }

test('[L-01] a file that came back while an earlier process deleted it is read after that', async () => {
  const queue = new HeldQueue()
  const intake = new Intake(queue as unknown as TaskQueue, async (path, change) => ({ path, change, priority: 1 }))
  intake.resume([gone])
  // The comparison at the start finds the file: the task that was left may already be past reading.
  expect(intake.isBeingRead('/a.txt')).toBe(false)
  await intake.offer('/a.txt', 'present')
  expect(queue.tasks).toEqual([])
  queue.end(gone)
  await expect.poll(() => queue.tasks).toEqual([{ path: '/a.txt', change: 'present', priority: 1 }])
  expect(intake.isBeingRead('/a.txt')).toBe(true)
})

test('[L-03] an orchestrator that has too much work is asked again; a caller who does not wait hears of it', async () => {
  let refusals = 2
  class BusyQueue extends HeldQueue {
    override async enqueue(task: FileTask): Promise<string> {
      if (refusals === 0) return super.enqueue(task)
      refusals -= 1
      throw new ImpresarioError('OVERLOADED', 'There is more work than can be done in time.')
    }
  }
  const queue = new BusyQueue()
  const prepare = async (path: string, change: FileTask['change']): Promise<FileTask> => ({ path, change, priority: 1 })
  const intake = new Intake(queue as unknown as TaskQueue, prepare, 1)
  await intake.offer('/a.txt', 'present')
  expect(queue.tasks).toHaveLength(1)
  refusals = 1
  await expect(intake.offer('/b.txt', 'present', false)).rejects.toMatchObject({ code: 'OVERLOADED' })
  await intake.offer('/b.txt', 'present', false)
  expect(queue.tasks).toHaveLength(2)
})
