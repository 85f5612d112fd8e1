/**
 * The program of a database thread: one transaction per message, and a reply when it is done. It is a string instead of
 * a separate file, because a thread cannot load TypeScript on Node 20.
 */
export const PROGRAM = `
'use strict'
const { parentPort, workerData } = require('node:worker_threads')
const { DatabaseSync } = require(workerData.driver)
const { file, settings, insert, isReader } = workerData
const db = isReader ? new DatabaseSync(file, { readOnly: true, timeout: 10000 }) : new DatabaseSync(file)
const statements = new Map()

function prepared(sql) {
  let statement = statements.get(sql)
  if (statement === undefined) {
    // As many as there are kinds of questions, but for lists of names of any length.
    if (statements.size > 200) statements.clear()
    statement = db.prepare(sql)
    statements.set(sql, statement)
  }
  return statement
}

function numberOf(pragma) {
  return Number(Object.values(prepared('PRAGMA ' + pragma).get())[0])
}

// Whether the log shows what was removed.
let isShown = false

function begin() {
  for (const line of settings) db.exec(line)
  // A file that somebody else made: space that comes free could never be given back. Once, and not while it is in use.
  if (numberOf('auto_vacuum') === 2) return
  try {
    db.exec('PRAGMA auto_vacuum = INCREMENTAL')
    db.exec('VACUUM')
    isShown = true
  } catch {}
}

function together(work) {
  db.exec('BEGIN IMMEDIATE')
  try {
    const value = work()
    db.exec('COMMIT')
    return value
  } catch (error) {
    db.exec('ROLLBACK')
    throw error
  }
}

// So many pages at a time. At the end the log is written back and emptied, so that the file becomes shorter also when nothing
// follows, and nobody reads in the log what is gone. Readers that are at work keep it for a while: the next trim tries again.
function giveBack(pagesMax, isLast) {
  if (numberOf('freelist_count') > 0 && numberOf('auto_vacuum') === 2) {
    db.exec('PRAGMA incremental_vacuum(' + pagesMax + ')')
    isShown = true
  }
  if (!isLast || !isShown) return
  db.exec('PRAGMA busy_timeout = 100')
  isShown = prepared('PRAGMA wal_checkpoint(TRUNCATE)').get().busy !== 0
  db.exec('PRAGMA busy_timeout = 10000')
}

const TAKE = 'INSERT INTO writers (writer, batch, written_at) VALUES (?1, ?2, ?3) ON CONFLICT (writer) DO UPDATE SET ' +
  'batch = excluded.batch, written_at = excluded.written_at WHERE writers.batch < excluded.batch'
const REMOVE_OLD = 'DELETE FROM history WHERE event_id IN ' +
  '(SELECT event_id FROM history WHERE timestamp < ?1 ORDER BY timestamp, event_id LIMIT ?2)'
const REMOVE_FIRST = 'DELETE FROM history WHERE event_id IN ' +
  '(SELECT event_id FROM history ORDER BY timestamp, event_id LIMIT ?1)'

const calls = {
  write({ writer, number, rows, at }) {
    return together(() => {
      if (Number(prepared(TAKE).run(writer, number, at).changes) === 0) return 0
      const statement = prepared(insert)
      for (const row of rows) statement.run(...row)
      return rows.length
    })
  },
  trim({ before, bytesMax, limit, writersBefore }) {
    const removed = together(() => {
      prepared('DELETE FROM writers WHERE written_at < ?1').run(writersBefore)
      const old = before === null ? 0 : Number(prepared(REMOVE_OLD).run(before, limit).changes)
      const used = (numberOf('page_count') - numberOf('freelist_count')) * numberOf('page_size')
      if (old > 0 || used <= bytesMax) return old
      // Rather a few pieces more than events that could have stayed: most take less than a kilobyte.
      const few = Math.min(limit, 50 + Math.ceil((used - bytesMax) / 1000))
      return Number(prepared(REMOVE_FIRST).run(few).changes)
    })
    if (removed > 0) isShown = true
    giveBack(limit, removed < limit)
    return removed
  },
  read(queries) {
    return queries.map(({ sql, values }) => prepared(sql).all(...values))
  },
}

if (!isReader) begin()

parentPort.on('message', ([id, name, argument]) => {
  if (name === 'close') {
    try {
      if (!isReader) db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      db.close()
    } finally {
      parentPort.close()
    }
    return
  }
  try {
    parentPort.postMessage([id, calls[name](argument), null])
  } catch (error) {
    parentPort.postMessage([id, 0, { message: String(error && error.message || error), code: error && error.errcode }])
  }
})
`
