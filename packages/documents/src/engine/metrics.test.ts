import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ParseFailure } from '../parsing/parser.ts'
import { newDirectory, startDocuments, TextParser } from './documents.fixture.ts'
import { metricsText } from './metrics.ts'

test('[L-07] tasks by type and status, their duration, the queue and the workers are measured', async () => {
  const folder = await newDirectory('folder')
  for (const name of ['a.txt', 'b.txt', 'bad.txt']) await writeFile(join(folder, name), 'слово')
  const parser = new TextParser()
  parser.before = (path) => {
    if (path.endsWith('bad.txt')) throw new ParseFailure('BROKEN', 'cut off')
  }
  const documents = await startDocuments({ directory: await newDirectory(), parser })
  await documents.add(folder)
  await documents.idle()
  const text = metricsText(documents.metrics())
  for (const line of [
    '# TYPE stroidex_tasks_processed_total counter',
    'stroidex_tasks_processed_total{type="parse",status="completed"} 2',
    'stroidex_tasks_processed_total{type="parse",status="failed"} 1',
    'stroidex_tasks_processed_total{type="index",status="completed"} 2',
    '# TYPE stroidex_task_duration_seconds histogram',
    'stroidex_task_duration_seconds_bucket{type="parse",le="+Inf"} 3',
    'stroidex_task_duration_seconds_count{type="parse"} 3',
    'stroidex_queue_size 0',
    'stroidex_workers_busy 0',
    'stroidex_errors_total 1',
    'impresario_documents_queue_size 0',
  ]) {
    expect(text.split('\n')).toContain(line)
  }
  expect(text).toMatch(/^stroidex_tasks_per_second 0\.\d+$/m)
})
