/**
 * Holds streams of changes open, as so many tabs would: `tabs-main.ts <address> <token> <count> reading|idle`. Idle ones are
 * connections over which one answer came and nothing more does.
 */
import { setMaxListeners } from 'node:events'
import { connect } from 'node:net'
import process from 'node:process'
import { createClient } from '@impresario/client'

const [url = '', token = '', count = '0', mode = 'reading'] = process.argv.slice(2)
const stop = new AbortController()
setMaxListeners(0, stop.signal)
let messages = 0

async function rest(ready: () => void): Promise<void> {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(`GET /health HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
  socket.once('data', ready)
  await new Promise<void>((resolve) => {
    stop.signal.addEventListener('abort', () => socket.destroy())
    socket.on('error', () => socket.destroy())
    socket.once('close', () => resolve())
  })
}

async function listen(ready: () => void): Promise<void> {
  for await (const { type } of createClient({ url, token }).changes({ signal: stop.signal })) {
    if (type === 'ready') ready()
    messages += 1
  }
}

const tabs: Promise<void>[] = []
for (let tab = 0; tab < Number(count); tab += 1) {
  await new Promise<void>((resolve) => {
    tabs.push(mode === 'idle' ? rest(resolve) : listen(resolve))
  })
}
process.on('message', () => {
  stop.abort()
  void Promise.all(tabs).then(() => {
    process.send?.(messages)
    process.disconnect()
  })
})
process.send?.('ready')
