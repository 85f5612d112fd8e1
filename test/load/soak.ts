/**
 * Large, many, slow, broken and dying, all at once on one server with a heap of 256 MB, which is killed in between. At the end
 * every acknowledged job has ended once and right, the server never ended by itself, and its memory and its file are back to
 * where they were.
 *
 *   npm run soak                                       ten minutes
 *   npm run soak -- --seconds 60 --kills 1             to see whether it runs at all
 *   npm run soak -- --heap 512
 */
import { parseArgs } from 'node:util'
import { soak } from './soak/run.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    heap: { type: 'string', default: '256' },
    kills: { type: 'string', default: '4' },
  },
})

const say = (text: string): void => console.log(`${new Date().toISOString().slice(11, 19)}  ${text}`)
const report = await soak({
  seconds: Number(values.seconds),
  heapMb: Number(values.heap),
  kills: Number(values.kills),
  isComplete: true,
  say,
})
const { complaints, ...figures } = report
console.log(JSON.stringify(figures, null, 2))
for (const complaint of complaints.slice(0, 50)) console.log(`✗ ${complaint}`)
console.log(complaints.length === 0 ? 'All is well.' : `${complaints.length} complaints.`)
process.exitCode = complaints.length === 0 ? 0 : 1
