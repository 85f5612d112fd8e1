// Reads a file in a process of its own, and searches on a thread.
import { mkdirSync, writeFileSync } from 'node:fs'
import process from 'node:process'
import { createDocuments, documentsConfig } from 'impresario/documents'
import type { Hit } from 'impresario/documents'

mkdirSync('documents', { recursive: true })
const escaped = 'договоры аренды'.replaceAll(/[^ ]/g, (char) => `\\u${char.charCodeAt(0)}?`)
writeFileSync('documents/note.rtf', `{\\rtf1\\ansi\\ansicpg1251 ${escaped}}`)
const config = documentsConfig({ ocr: { enabled: false } })
const documents = createDocuments({ directory: './documents-index', config })
await documents.start()
await documents.add('documents')
await documents.idle()
const hits: readonly Hit[] = (await documents.search('договор')).hits
for (const { name, snippet } of hits) process.stdout.write(`${name}: ${snippet}\n`)
await documents.stop()
