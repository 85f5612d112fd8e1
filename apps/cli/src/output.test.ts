import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import type { Job } from '@impresario/client'
import { createScreen, paintActivity } from './screen.ts'
import type { Screen } from './screen.ts'
import { facts, table } from './table.ts'
import { ago, span } from './time.ts'
import { LiveLine, TrailReader, statusLine } from './watch.ts'

function screen(options: {
  readonly isTTY: boolean
  readonly env?: Record<string, string>
}): Screen & { lines: string[] } {
  const lines: string[] = []
  const stream = { isTTY: options.isTTY, columns: 80, write: (text: string) => lines.push(text) }
  return { ...createScreen({ stdout: stream, stderr: stream, env: options.env ?? {} }), lines }
}

test.for([
  [0, '0 ms'],
  [0.0374, '37 ms'],
  [0.9999, '1.0 s'],
  [9.94, '9.9 s'],
  [9.96, '10 s'],
  [59.4, '59 s'],
  [59.6, '1 min'],
  [3_590, '1 h'],
  [86_400, '1 d'],
  [-1, '0 ms'],
] as const)('[M-03] a span of %d seconds reads "%s"', ([seconds, text]) => {
  expect(span(seconds)).toBe(text)
})

test('[M-03] what has just been is now', () => {
  expect([ago(100, 100.5), ago(100, 160)]).toEqual(['now', '1 min ago'])
})

test('[M-03] columns stay aligned when cells are coloured', () => {
  const coloured = screen({ isTTY: true })
  const rows = [
    { name: 'a', status: 'finished', count: 5 },
    { name: 'longer', status: 'x', count: 10 },
  ]
  const columns = [
    { title: 'name', cell: (row: (typeof rows)[number]) => row.name },
    { title: 'status', cell: (row: (typeof rows)[number]) => coloured.paint('green', row.status) },
    { title: 'n', cell: (row: (typeof rows)[number]) => String(row.count), align: 'right' as const },
  ]
  expect(stripVTControlCharacters(table(coloured, rows, columns)).split('\n')).toEqual([
    'NAME    STATUS     N',
    'a       finished   5',
    'longer  x         10',
  ])
})

test('[M-03] facts that are not known are left out', () => {
  expect(
    facts(screen({ isTTY: false }), [
      ['job', 'j1'],
      ['parent', undefined],
      ['status', 'ok'],
    ]),
  ).toBe('job     j1\nstatus  ok')
})

test('[M-03] colours on a terminal only, and never against NO_COLOR', () => {
  const painted = (isTTY: boolean, env = {}): string => screen({ isTTY, env }).paint('red', 'x')
  expect(painted(true)).not.toBe('x')
  expect(painted(false)).toBe('x')
  expect(painted(true, { NO_COLOR: '1' })).toBe('x')
  expect(painted(true, { NO_COLOR: '' })).not.toBe('x')
  expect(painted(true, { TERM: 'dumb' })).toBe('x')
  expect(painted(false, { FORCE_COLOR: '1' })).not.toBe('x')
  expect(painted(false, { FORCE_COLOR: '0' })).toBe('x')
})

test('[M-03] every moment is told once, although each body repeats and drops some', () => {
  const reader = new TrailReader()
  const at = (time: number, event: string) => ({ at: time, event })
  const told = (...trail: ReturnType<typeof at>[]): readonly string[] => reader.next(trail).map(({ event }) => event)
  expect(told(at(1, 'a'), at(2, 'b'))).toEqual(['a', 'b'])
  expect(told(at(1, 'a'), at(2, 'b'))).toEqual([])
  expect(told(at(1, 'a'), at(2, 'b'), at(2, 'c'))).toEqual(['c'])
  expect(told(at(2, 'b'), at(2, 'c'), at(2, 'd'), at(3, 'e'))).toEqual(['d', 'e'])
  expect(told(at(7, 'x'), at(7, 'y'))).toEqual(['x', 'y'])
})

const job = {
  id: 'j1',
  jobId: 'j1',
  blueprintName: 'b',
  blueprintVersion: 1,
  status: 'waiting_for_worker' as const,
  currentState: 'transcode',
  initialData: {},
  stateHistory: {},
  progress: 0.5,
  progressMessage: 'scene 2',
  createdAt: 1,
  updatedAt: 1,
  version: 1,
  trail: [],
}

test('[M-03] the status line shows how far the task is, and never wraps', () => {
  const plain = screen({ isTTY: false })
  expect(statusLine(plain, job, 0)).toBe('⠋ transcode  waiting for worker  ████████████░░░░░░░░░░░░ 50 %  scene 2')
  expect(statusLine({ ...plain, columns: 40 }, job, 0)).toBe('⠋ transcode  waiting for worker')
})

test('[M-03] what a job is doing is said with where its work is', () => {
  const plain = screen({ isTTY: false })
  const nothing = { waiting: 0, delayed: 0, running: 0, workers: [], children: [] }
  const said = (work: Partial<NonNullable<Job['work']>>, status: Job['status'] = 'waiting_for_worker'): string =>
    paintActivity(plain, { status, work: { ...nothing, ...work } })
  expect(said({ waiting: 1 })).toBe('waiting for a worker')
  expect(said({ running: 1, workers: ['gpu-1'] })).toBe('running at gpu-1')
  expect(said({ delayed: 1 })).toBe('waiting for its next try')
  expect(said({ children: ['j2'] }, 'waiting_for_child')).toBe('waiting for child')
  expect(said({}, 'waiting_for_parallel')).toBe('waiting for parallel')
  expect(said({ waiting: 2, running: 5, workers: ['a', 'b', 'c', 'd'], unseen: 9 }, 'waiting_for_parallel')).toBe(
    '5 running at a, b, c, …, 2 waiting for a worker, 9 more',
  )
  expect(paintActivity(plain, { status: 'waiting_for_human' })).toBe('waiting for human')
})

test('[M-03] a live line is drawn on terminals only', () => {
  const terminal = screen({ isTTY: true })
  const live = new LiveLine(terminal, (text) => terminal.lines.push(text))
  live.show(() => 'working')
  live.print('a line that stays')
  live.stop()
  const clear = '\r\u001B[2K'
  expect(terminal.lines).toEqual([`${clear}working`, clear, 'a line that stays\n', `${clear}working`, clear])
  const pipe = screen({ isTTY: false })
  const plain = new LiveLine(pipe, (text) => pipe.lines.push(text))
  plain.show(() => 'working')
  plain.print('a line that stays')
  plain.stop()
  expect(pipe.lines).toEqual(['a line that stays\n'])
})
