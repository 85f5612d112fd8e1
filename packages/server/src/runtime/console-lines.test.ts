import { expect, onTestFinished, test } from 'vitest'
import { consoleIntoLog } from './console-lines.ts'
import { createLog } from './log.ts'

test('[I-05] what handlers write with console are lines of the log, each one JSON object', () => {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) > 0 }
  const undo = consoleIntoLog(
    createLog({ level: 'info', format: 'json', timeZone: 'UTC', instance: 'one', destination }),
  )
  onTestFinished(undo)
  console.log('price %d', 7, { of: 'lamp' })
  console.error(new Error('over two\nlines'))
  console.table([{ a: 1 }])
  const { log } = console
  log('taken out of console')
  undo()
  const read = lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
  expect(read.map(({ level, source }) => [level, source])).toEqual([
    ['info', 'console'],
    ['warn', 'console'],
    ['info', 'console'],
    ['info', 'console'],
  ])
  expect(read[0]?.['msg']).toBe("price 7 { of: 'lamp' }")
  expect(read[1]?.['msg']).toMatch(/^Error: over two\nlines\n +at /)
  expect(read[3]?.['msg']).toBe('taken out of console')
  expect(lines.every((line) => line.indexOf('\n') === line.length - 1)).toBe(true)
})
