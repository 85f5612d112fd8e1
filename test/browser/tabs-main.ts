/** Holds streams of changes open, as so many tabs would: `tabs-main.ts <address> <token> <count>`. */
import { setMaxListeners } from 'node:events'
import process from 'node:process'
import { createClient } from '@impresario/client'

const [url = '', token = '', count = '0'] = process.argv.slice(2)
const stop = new AbortController()
setMaxListeners(0, stop.signal)
let messages = 0

async function listen(ready: () => void): Promise<void> {
  for await (const { type } of createClient({ url, token }).changes({ signal: stop.signal })) {
    if (type === 'ready') ready()
    messages += 1
  }
}

const tabs: Promise<void>[] = []
for (let tab = 0; tab < Number(count); tab += 1) {
  await new Promise<void>((resolve) => {
    tabs.push(listen(resolve))
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
