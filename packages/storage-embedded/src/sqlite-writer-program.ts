/**
 * The program of the writer thread: prepared statements, one transaction per write, and a reply once the write is on
 * disk. It is a string instead of a separate file, because a thread cannot load TypeScript on Node 20, and the package
 * has to work from its sources (in tests) as well as built.
 *
 * Once a second it also does maintenance. It returns free pages to the file system. After records were deleted, it
 * truncates the log, because the log still shows them. It also checks that its files are still the ones that it opened:
 * SQLite continues to write to a deleted file, and those writes are lost when the process ends.
 */
export const PROGRAM = `
'use strict'
const { statSync } = require('node:fs')
const { parentPort, workerData } = require('node:worker_threads')
const { DatabaseSync } = require(workerData.driver)
const { files, isNumber, dropAt, sweepAt, sweepBytes, sweepMs, houseMs, keptPages, stepPages } = workerData
const db = new DatabaseSync(workerData.file)
for (const pragma of workerData.pragmas) db.exec(pragma)
const begin = db.prepare('BEGIN IMMEDIATE')
const commit = db.prepare('COMMIT')
const statements = workerData.statements.map((sql) => db.prepare(sql))
const hasExpired = db.prepare(workerData.hasExpired)
const expired = db.prepare(workerData.expired)
const drop = db.prepare(workerData.drop)

let isOpen = true
/** Whether this write left expired records behind. */
let hasRemains = false
/** Whether the log shows what was deleted, and when that began. */
let deletedAt = 0
let writes = 0
let writesSeen = 0
const log = workerData.file + '-wal'

function sweep(now, max) {
  if (hasExpired.get(now) === undefined) return
  const rows = expired.all(now, max)
  let bytes = 0
  let done = 0
  for (const { kind, id, size } of rows) {
    if (bytes >= sweepBytes) break
    drop.run(kind, id)
    bytes += size
    done += 1
  }
  hasRemains = done < rows.length || rows.length === max
  if (done > 0 && deletedAt === 0) deletedAt = performance.now()
}

function write({ isFirst, isLast, parts, shape, text, numbers }) {
  let value = 0
  let number = 0
  let offset = 0
  if (isFirst) {
    begin.run()
    hasRemains = false
  }
  parts.forEach(([width, runs], index) => {
    const statement = statements[index]
    const row = new Array(width)
    for (let run = 0; run < runs; run++) {
      for (let column = 0; column < width; column++) {
        const length = shape[value++]
        if (length >= 0) {
          row[column] = text.substring(offset, offset + length)
          offset += length
        } else row[column] = length === isNumber ? numbers[number++] : null
      }
      if (index === sweepAt) sweep(row[0], row[1])
      else statement.run(...row)
    }
  })
  if (parts[dropAt][1] > 0 && deletedAt === 0) deletedAt = performance.now()
  if (!isLast) return
  commit.run()
  writes += 1
  mustBeThere()
}

function identityOf(path) {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found === undefined ? undefined : found.dev + ':' + found.ino
}

/** The log is there from the first write on, and stays the same file as long as a connection is open. */
function mustBeThere() {
  if (files.every(([path, identity]) => identityOf(path) === identity)) {
    if (files.some(([path]) => path === log)) return
    const identity = identityOf(log)
    if (identity !== undefined) files.push([log, identity])
    return
  }
  throw Object.assign(new Error(workerData.filesGone), { isGone: true })
}

function numberOf(pragma) {
  return Object.values(db.prepare('PRAGMA ' + pragma).get())[0]
}

/** Some pages stay free for what comes next. True if there is more to give back. */
function vacuum() {
  const free = numberOf('freelist_count')
  const kept = Math.max(keptPages, Math.floor(numberOf('page_count') / 16))
  if (free <= kept || numberOf('auto_vacuum') !== 2) return false
  db.exec('PRAGMA incremental_vacuum(' + Math.min(free - kept, stepPages) + ')')
  if (deletedAt === 0) deletedAt = performance.now()
  return free - kept > stepPages
}

let isBetween = true
function keepHouse() {
  if (!isOpen || !isBetween) return
  const isIdle = writes === writesSeen
  writesSeen = writes
  mustBeThere()
  // While there is other work a twentieth of the time is enough; without, it goes on after each message that may have come.
  const until = performance.now() + houseMs
  let hasMore = vacuum()
  while (hasMore && performance.now() < until) hasMore = vacuum()
  if (hasMore && isIdle) setImmediate(guarded, keepHouse)
  else if (deletedAt !== 0 && (isIdle || performance.now() - deletedAt >= sweepMs)) {
    const { busy } = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()
    if (busy === 0) deletedAt = 0
  }
}

/** Only files that are gone are a reason to stop: whatever else goes wrong here, a write will meet it too. */
function guarded(work) {
  try {
    work()
  } catch (error) {
    if (error && error.isGone) parentPort.postMessage({ gone: error.message })
  }
}

const timer = setInterval(guarded, 1000, keepHouse)
timer.unref()

parentPort.on('message', (changes) => {
  if (changes === 'close') {
    isOpen = false
    clearInterval(timer)
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    parentPort.close()
    return
  }
  try {
    isBetween = changes.isLast
    write(changes)
    parentPort.postMessage({ hasRemains })
  } catch (error) {
    parentPort.postMessage({ failure: String(error && error.message || error), isGone: Boolean(error && error.isGone) })
  }
})
`
