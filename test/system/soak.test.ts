/** A short version of `npm run soak`: long enough to crash a server that limits counts where it should limit bytes. */
import { expect, test } from 'vitest'
import { soak } from '../load/soak/run.ts'

test(
  '[C-10] [C-11] [I-09] large, many, slow, broken and dying do not end a server with a small heap, and nothing is lost',
  { timeout: 420_000, retry: 0 },
  async () => {
    const lines: string[] = []
    const say = (text: string): void => {
      lines.push(text)
    }
    const report = await soak({ seconds: 20, heapMb: 256, kills: 1, isComplete: false, say })
    if (report.complaints.length > 0) console.log(lines.join('\n'))
    expect(report.complaints).toEqual([])
    expect(report.acknowledged).toBeGreaterThan(10)
    expect(report.right).toBe(report.acknowledged)
  },
)
