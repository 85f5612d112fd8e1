import { randomFillSync } from 'node:crypto'

const ID_BYTES = 8
/** One call of the system for so many ids: it takes as long for one as for all of them. */
const IDS = 512

/** Makes ids of spans that are known by no name. */
export function randomSpanIds(): () => string {
  const pool = Buffer.alloc(ID_BYTES * IDS)
  let next = pool.length
  return () => {
    if (next === pool.length) {
      randomFillSync(pool)
      next = 0
    }
    next += ID_BYTES
    return pool.toString('hex', next - ID_BYTES, next)
  }
}
