import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { StallWatch } from './stall-watch.ts'

const MODULE = fileURLToPath(new URL('stall-watch.ts', import.meta.url))

/** Runs a program with the watch, and tells how it ended. */
async function ended(limitMs: number, program: string): Promise<{ signal: unknown; text: string }> {
  const source = `import { StallWatch } from ${JSON.stringify(MODULE)}\nnew StallWatch(${limitMs}).start()\n${program}`
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', source], { stdio: 'pipe' })
  let text = ''
  child.stderr.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const [, signal] = (await once(child, 'close')) as [unknown, unknown]
  return { signal, text }
}

describe('[C-11] an event loop that stands still', () => {
  test('ends the process, and says why', async () => {
    const { signal, text } = await ended(300, 'setTimeout(() => { for (;;) Math.sqrt(2) }, 1)')
    expect(signal).toBe('SIGKILL')
    expect(text).toContain('EVENT_LOOP_STALLED')
  })

  test('waiting is not standing still, and neither is work in steps', async () => {
    const waits = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000)'
    expect(await ended(1_000, waits)).toEqual({ signal: null, text: '' })
  })

  test('it keeps no process alive, and can be switched off', async () => {
    expect(await ended(0, 'const end = Date.now() + 500; while (Date.now() < end);')).toEqual({
      signal: null,
      text: '',
    })
    const watch = new StallWatch(60_000)
    watch.start()
    watch.start()
    watch.stop()
    watch.stop()
  })
})
