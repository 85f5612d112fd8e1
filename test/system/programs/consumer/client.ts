import process from 'node:process'
import { createClient } from 'impresario/client'
import { hello } from './blueprints/hello.ts'

const client = createClient({ url: process.env['IMPRESARIO_URL'] ?? '', token: process.env['IMPRESARIO_TOKEN'] ?? '' })
const job = await client.start(hello, { name: 'Ada' })
const greeting: string = await job.result()
process.stdout.write(`${greeting}\n`)
