/** The program of a thread that searches. It keeps the indexes that it was asked for last open, read-only. */
import { parentPort } from 'node:worker_threads'
import { isImpresarioError } from '@impresario/protocol/light'
import { openForReading } from './schema.ts'
import type { Database } from './schema.ts'
import { addFunctions, hitsOf, searchIn, textIn, unpacked } from './search.ts'
import type { SearchAnswer, SearchOrder } from './search-threads.ts'

/** Each has a cache of two megabytes at most. */
const OPEN_MAX = 8

const open = new Map<string, Database>()

function opened(directory: string): Database {
  const known = open.get(directory)
  open.delete(directory)
  const db = known ?? openForReading(directory)
  if (known === undefined) addFunctions(db)
  open.set(directory, db)
  const [oldest] = open.keys()
  if (open.size > OPEN_MAX && oldest !== undefined) close(oldest)
  return db
}

function close(directory: string): void {
  open.get(directory)?.close()
  open.delete(directory)
}

function valueOf(order: SearchOrder): unknown {
  const { directory } = order
  if (order.what === 'search') return searchIn(opened(directory), order.query, order.options, order.bounds)
  if (order.what === 'text') return textIn(opened(directory), order.id)
  if (order.what === 'hits') return hitsOf(order.rows, order.query, order.bounds)
  if (order.what === 'unpack') return unpacked(order.packed)
  close(directory)
  return undefined
}

function answerTo(order: SearchOrder): SearchAnswer {
  try {
    return { value: valueOf(order) }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return isImpresarioError(error) ? { error: message, code: error.code } : { error: message }
  }
}

parentPort?.on('message', (order: SearchOrder) => {
  if (order.what !== 'end') {
    parentPort?.postMessage(answerTo(order))
    return
  }
  for (const directory of open.keys()) close(directory)
  parentPort?.close()
})
// It is ready.
parentPort?.postMessage({})
