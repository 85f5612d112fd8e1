/**
 * What runs in the thread that owns the database's writing end: one transaction per message, an answer when it is done. Text
 * instead of a file of its own, because a thread cannot load TypeScript on Node 20.
 */
export const PROGRAM = `
'use strict'
const { parentPort, workerData } = require('node:worker_threads')
const { DatabaseSync } = require(workerData.driver)
const db = new DatabaseSync(workerData.file)
for (const line of workerData.schema) db.exec(line)
const insert = db.prepare(workerData.insert)
// Events are written about as they happen, so that the oldest come first: nothing else has to be looked at.
const first = db.prepare('SELECT event_id AS id, timestamp FROM history ORDER BY event_id LIMIT ?')
const remove = db.prepare('DELETE FROM history WHERE event_id <= ?')
const pages = db.prepare('PRAGMA page_count')
const spare = db.prepare('PRAGMA freelist_count')
const size = db.prepare('PRAGMA page_size')

function usedBytes() {
  return (pages.get().page_count - spare.get().freelist_count) * size.get().page_size
}

const calls = {
  write(rows) {
    db.exec('BEGIN IMMEDIATE')
    try {
      for (const row of rows) insert.run(...row)
      db.exec('COMMIT')
    } catch (error) {
      db.exec('ROLLBACK')
      throw error
    }
    return rows.length
  },
  trim({ before, bytesMax, limit }) {
    let found = first.all(limit)
    if (usedBytes() <= bytesMax) {
      const stays = found.findIndex((row) => row.timestamp >= before)
      if (stays >= 0) found = found.slice(0, stays)
    }
    if (found.length === 0) return 0
    remove.run(found[found.length - 1].id)
    db.exec('PRAGMA incremental_vacuum(' + limit + ')')
    return found.length
  },
}

parentPort.on('message', ([id, name, argument]) => {
  if (name === 'close') {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    parentPort.close()
    return
  }
  try {
    parentPort.postMessage([id, calls[name](argument), null])
  } catch (error) {
    parentPort.postMessage([id, 0, String(error && error.message || error)])
  }
})
`
